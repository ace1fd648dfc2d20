package delayqueue

import (
	"embed"
	"sync"

	"github.com/sluicehq/sluice/shared/internal/luascript"
	"github.com/sluicehq/sluice/shared/redisconn"
)

//go:embed scripts
var scriptFiles embed.FS

type scripts struct {
	enqueue, claim, accept, requeue, ack, change, maintain, stats, redrive, recordSent, takeOver redisconn.Script
}

// loadScripts returns the scripts. All Queues of a process share them, so each script is composed
// only once.
var loadScripts = sync.OnceValue(newScripts) //nolint:gochecknoglobals // a function that never changes

func newScripts() scripts {
	load := func(name string) redisconn.Script {
		return luascript.Load(scriptFiles, "scripts/"+name+".lua")
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
