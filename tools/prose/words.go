package main

import "regexp"

// stopper is a phrase that is hard to understand, with its replacement.
type stopper struct {
	pattern *regexp.Regexp
	instead string
}

// stoppers returns the phrases that the project does not use. CONTRIBUTING.md describes the style.
func stoppers() []stopper {
	return words
}

func phrase(pattern string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:` + pattern + `)\b`)
}

//nolint:gochecknoglobals // a table that never changes
var words = []stopper{
	{phrase(`(?:is|are|was|were|be|been|redis|dynamodb|sqs|it) away`), `"unavailable" or "unreachable"`},
	{phrase(`(?:taken|takes|took|take|taking) in|intake`), `"accepted" or "enqueued"`},
	{phrase(`anew|afresh`), `"again" or "from scratch"`},
	{phrase(`(?:tell|says|say|is|are|of) whether`), `"reports whether"`},
	{phrase(`(?:is|are|was|were|be|been|being) told`), `"receives", "is notified" or "gets"`},
	{phrase(`(?:is|are|was|be) heard|hears?(?: of)?`), `"receives" or "is notified"`},
	{phrase(`(?:gives?|gave|given|giving) (?:it |them |that |what )?back`), `"releases", "requeues" or "returns"`},
	{phrase(`(?:asks?|asked|asking) (?:redis|dynamodb|sqs|the (?:store|server|dispatcher|limiter))`),
		`"queries", "reads" or "calls"`},
	{phrase(`lets? (?:in|pass|through)|let (?:in|pass|through)`), `"grants", "allows" or "admits"`},
	{phrase(`at once`), `"immediately" or "concurrently"`},
	{phrase(`(?:by|of) (?:itself|themselves)`), `"on its own", "automatically" or "independently"`},
	{phrase(`in the end`), `the number, or "eventually"`},
	{phrase(`till`), `"until"`},
	{phrase(`but for`), `"except"`},
	{phrase(`beside`), `"next to", "with" or "except"`},
	{phrase(`or else`), `"otherwise"`},
	{phrase(`something broke`), `"internal error"`},
	{phrase(`for good`), `"permanently"`},
	{phrase(`would have it`), `the rule itself`},
	{phrase(`any more`), `"no longer"`},
	{phrase(`(?:the other|another) one|as far as`), `the noun`},
	{phrase(`(?:is|are) that of`), `"is the same as" or "follows"`},
	{phrase(`(?:has|have|had|with) another (?:body|content|id|payload|status|value|version)`), `"different"`},
	{phrase(`tells`), `"reports" or "returns"`},
}
