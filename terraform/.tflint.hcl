# tflint --recursive with the whole of its bundled ruleset for the language. (The ruleset for AWS is a download of its own; what it would find
# about names and types is found by tools/check-module.sh on the provider's real schema.)

plugin "terraform" {
  enabled = true
  preset  = "all"
}

# Modules are called by their folder.
rule "terraform_module_pinned_source" {
  enabled = false
}

# The module's variables are in three files by what they are about (what is deployed, where it stands, what operators see), and the small examples
# are one file that can be read from top to bottom.
rule "terraform_standard_module_structure" {
  enabled = false
}
