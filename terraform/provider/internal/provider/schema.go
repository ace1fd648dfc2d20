package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/float64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"

	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/terraform/provider/internal/duration"
	"github.com/sluicehq/sluice/terraform/provider/internal/integer"
)

// defaultLocalShare repeats the service's default, so that a plan shows it.
const defaultLocalShare = 0.1

// policySchema returns the schema of the resource sluice_limiter_policy.
func policySchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A limiter policy. A change takes effect everywhere within 5 s.\n\n" +
			"The plan fails for every configuration that the service would reject. " +
			"Creating a policy that already exists is an error, unless `overwrite` is set. " +
			"The provider does not replace a policy that has changed since Terraform read it.",
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				Required: true, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
				MarkdownDescription: "The name that callers use: 1 to 128 letters, digits and `. _ : -`. " +
					"A change of the name replaces the policy.",
			},
			"description": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(""),
				MarkdownDescription: "A description for people, up to 1024 bytes.",
			},
			"mode": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(string(policy.Enforce)),
				MarkdownDescription: "`enforce` (the default), `shadow` (decides and counts, but always allows), " +
					"`deny` or `allow`.",
			},
			"on_unavailable": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(string(policy.UnavailableLocal)),
				MarkdownDescription: "How a check is decided while the store is unavailable: `local` (the default) " +
					"counts in memory, `allow` allows it, and `deny` denies it.",
			},
			"local_share": schema.Float64Attribute{
				Optional: true, Computed: true, Default: float64default.StaticFloat64(defaultLocalShare),
				MarkdownDescription: "The share of each limit that one instance admits while the store is " +
					"unavailable: above 0, at most 1. Defaults to `0.1`.",
			},
			"no_deny_cache": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "Whether every check reads the store, even for a key that was denied before. " +
					"Defaults to `false`.",
			},
			"rules": rulesAttribute(true,
				"1 to 8 limits. A check must satisfy all of them. "+
					"A rule keeps its count as long as it keeps its name."),
			"overrides": overridesAttribute(),
			"overwrite": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Whether the creation may replace an existing policy of this name. " +
					"Defaults to `false`: an existing policy is an error.",
			},
			"version":    schema.Int64Attribute{Computed: true, MarkdownDescription: versionText},
			"etag":       schema.StringAttribute{Computed: true, MarkdownDescription: etagText},
			"updated_at": schema.StringAttribute{Computed: true, MarkdownDescription: updatedText},
		},
	}
}

const (
	versionText = "The version. It increases by one with every change, and continues after a deletion."
	etagText    = "The HTTP entity tag of this version, with its quotes."
	updatedText = "The time of the last change, in RFC 3339."
)

// rulesAttribute returns the attribute of a list of rules.
func rulesAttribute(required bool, text string) schema.ListNestedAttribute {
	return schema.ListNestedAttribute{
		Required: required, Optional: !required, MarkdownDescription: text,
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "A name that is unique among the rules.",
			},
			"algorithm": schema.StringAttribute{
				Required: true,
				MarkdownDescription: "`fixed_window`, `sliding_window`, `sliding_window_counter`, `token_bucket` " +
					"or `gcra`.",
			},
			"limit": schema.Int64Attribute{
				Required: true, CustomType: integer.Type{},
				MarkdownDescription: "The number of units that a window admits: 1 to 1 000 000 000; for " +
					"`sliding_window`, at most 100 000.",
			},
			"window": schema.StringAttribute{
				Required: true, CustomType: duration.Type{}, PlanModifiers: []planmodifier.String{duration.KeepEqual()},
				MarkdownDescription: "A length of time from `1ms` to `366d`, such as `1s`, `90s`, `1h30m`, `2d` " +
					"or `1w`. " +
					"A different notation of the same length is no change.",
			},
			"burst": schema.Int64Attribute{
				Optional: true, CustomType: integer.Type{},
				MarkdownDescription: "The units that an idle key may use without waiting; only for `token_bucket` " +
					"and `gcra`. " +
					"Defaults to the limit.",
			},
		}},
	}
}

// overridesAttribute returns the attribute of the list of overrides.
func overridesAttribute() schema.ListNestedAttribute {
	return schema.ListNestedAttribute{
		Optional: true,
		MarkdownDescription: "Up to 1000 exceptions for keys, in any order. An exact key takes precedence over " +
			"prefixes. A longer prefix takes precedence over a shorter prefix.",
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"key": schema.StringAttribute{Required: true,
				MarkdownDescription: "A key, or a prefix of keys that ends in `*`."},
			"mode":  schema.StringAttribute{Optional: true, MarkdownDescription: "Replaces the mode of the policy."},
			"rules": rulesAttribute(false, "Replace the rules of the policy."),
		}},
	}
}
