package main

import (
	"errors"
	"strings"
	"sync"
)

// inParallel calls call(i) for each i from 0 to n-1, in 16 goroutines. After an error, a goroutine
// makes no further calls.
func inParallel(n int, call func(i int) error) error {
	const workers = 16
	errs := make([]error, workers)
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			for i := w; i < n && errs[w] == nil; i += workers {
				errs[w] = call(i)
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// after returns the text that follows the first occurrence of mark.
func after(text, mark string) string {
	_, rest, _ := strings.Cut(text, mark)
	return rest
}
