package delayqueue

import (
	"embed"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/shared/luascript"
)

//go:embed scripts
var scriptFiles embed.FS

type scripts struct {
	enqueue, claim, accept, requeue, ack, change, maintain, stats, redrive, recordSent, takeOver *redis.Script
}

// loadScripts returns the scripts, which are composed once in a process.
var loadScripts = sync.OnceValue(composeScripts) //nolint:gochecknoglobals // a function that never changes

func composeScripts() scripts {
	load := func(name string) *redis.Script {
		return redis.NewScript(luascript.MustCompose(scriptFiles, "scripts/"+name+".lua").Text)
	}
	return scripts{
		enqueue:    load("enqueue"),
		claim:      load("claim"),
		accept:     load("accept"),
		requeue:    load("requeue"),
		ack:        load("ack"),
		change:     load("change"),
		maintain:   load("maintain"),
		stats:      load("stats"),
		redrive:    load("redrive"),
		recordSent: load("recordsent"),
		takeOver:   load("takeover"),
	}
}
