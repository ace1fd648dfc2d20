# All rules of tflint's bundled ruleset for the language. The ruleset for AWS would be another
# download; tools/check-module.sh finds wrong names and types with the real schema of the provider.

plugin "terraform" {
  enabled = true
  preset  = "all"
}

# Modules are referenced by their folder.
rule "terraform_module_pinned_source" {
  enabled = false
}

# The variables of the module are in three files by topic, and each small example is a single file.
rule "terraform_standard_module_structure" {
  enabled = false
}
