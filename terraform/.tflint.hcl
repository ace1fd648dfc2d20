# Enables all rules of tflint's bundled ruleset for the Terraform language. The separate AWS ruleset
# is not needed: tools/check-module.sh finds wrong names and types with the provider's real schema.

plugin "terraform" {
  enabled = true
  preset  = "all"
}

# The modules are local folders, which have no version to pin.
rule "terraform_module_pinned_source" {
  enabled = false
}

# The module's variables are in three files, one for each topic. Small examples are single files.
rule "terraform_standard_module_structure" {
  enabled = false
}
