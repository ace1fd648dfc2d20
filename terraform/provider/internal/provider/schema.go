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
	"github.com/sluicehq/sluice/terraform/provider/internal/whole"
)

// defaultLocalShare is the service's own default, so that a plan shows it.
const defaultLocalShare = 0.1

func policySchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A limiter's policy. A change is in force everywhere within 5 s.\n\n" +
			"Whatever the service would refuse is refused at plan time. A policy that exists already is not taken over, and one that was changed elsewhere since " +
			"Terraform read it is not overwritten.",
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				Required: true, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
				MarkdownDescription: "What callers name. Letters, digits and `. _ : -`, up to 128. Another name is another policy.",
			},
			"description": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(""),
				MarkdownDescription: "For people: up to 1024 bytes.",
			},
			"mode": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(string(policy.Enforce)),
				MarkdownDescription: "`enforce` (the default), `shadow` (decides and counts, but always allows), `deny` or `allow`.",
			},
			"on_unavailable": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(string(policy.UnavailableLocal)),
				MarkdownDescription: "What decides while the store is away: `local` (the default: counts in memory), `allow` or `deny`.",
			},
			"local_share": schema.Float64Attribute{
				Optional: true, Computed: true, Default: float64default.StaticFloat64(defaultLocalShare),
				MarkdownDescription: "The part of each limit that one instance admits while the store is away: over 0, up to 1. `0.1` unless given.",
			},
			"no_deny_cache": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "Makes every check ask the store, also for a key that is known to be denied.",
			},
			"rules": rulesAttribute(true,
				"1 to 8 limits, all of which hold at once. A rule's count belongs to its name."),
			"overrides": overridesAttribute(),
			"overwrite": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "Lets the creation take over a policy of this name that exists already. Without it that is an error.",
			},
			"version":    schema.Int64Attribute{Computed: true, MarkdownDescription: versionText},
			"etag":       schema.StringAttribute{Computed: true, MarkdownDescription: etagText},
			"updated_at": schema.StringAttribute{Computed: true, MarkdownDescription: updatedText},
		},
	}
}

const (
	versionText = "Rises by one with every change, also over a deletion."
	etagText    = "Identifies this version: an HTTP entity tag, with its quotes."
	updatedText = "When it was last changed: an RFC 3339 instant."
)

func rulesAttribute(required bool, text string) schema.ListNestedAttribute {
	return schema.ListNestedAttribute{
		Required: required, Optional: !required, MarkdownDescription: text,
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{Required: true, MarkdownDescription: "Unique among the rules."},
			"algorithm": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "`fixed_window`, `sliding_window`, `sliding_window_counter`, `token_bucket` or `gcra`.",
			},
			"limit": schema.Int64Attribute{
				Required: true, CustomType: whole.Type{},
				MarkdownDescription: "How much a window admits: 1 to 1 000 000 000; a `sliding_window` up to 100 000.",
			},
			"window": schema.StringAttribute{
				Required: true, CustomType: duration.Type{}, PlanModifiers: []planmodifier.String{duration.KeepEqual()},
				MarkdownDescription: "A length of time, `1ms` to `366d`: `1s`, `90s`, `1h30m`, `2d`, `1w`. Another way to write the same length is no change.",
			},
			"burst": schema.Int64Attribute{
				Optional: true, CustomType: whole.Type{},
				MarkdownDescription: "How much may pass at once; for `token_bucket` and `gcra` only. The limit unless given.",
			},
		}},
	}
}

func overridesAttribute() schema.ListNestedAttribute {
	return schema.ListNestedAttribute{
		Optional:            true,
		MarkdownDescription: "Up to 1000 exceptions for keys, in your order. The exact key wins, then the longest prefix.",
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"key": schema.StringAttribute{Required: true,
				MarkdownDescription: "A key, or a prefix of keys that ends in `*`."},
			"mode":  schema.StringAttribute{Optional: true, MarkdownDescription: "As the policy's, which it replaces."},
			"rules": rulesAttribute(false, "As the policy's, which they replace."),
		}},
	}
}
