package main

import (
	"errors"
	"strings"
	"sync"
)

// inParallel calls each of n, several at once.
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

// after is what stands after the first mark in text.
func after(text, mark string) string {
	_, rest, _ := strings.Cut(text, mark)
	return rest
}
