module github.com/sluicehq/sluice/tools/tofu

go 1.26.6

// What build.sh builds, by the go.mod of its own.
require github.com/opentofu/opentofu v1.12.6
