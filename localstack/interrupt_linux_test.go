package main_test

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// openTerminal opens a pseudo-terminal. It returns the end that plays the user and the end that the
// programs use as their terminal.
func openTerminal(t *testing.T) (user, programs *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = user.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0)) // unlocks the programs' end
	number, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	programs, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = programs.Close() })
	return user, programs
}

func TestMakeUp(t *testing.T) {
	t.Parallel()
	t.Run("Ctrl-C: stops the stack and exits with 0", func(t *testing.T) {
		t.Parallel()
		user, programs := openTerminal(t)
		cmd := exec.CommandContext(t.Context(), "make", "-C", "..", "up",
			"ARGS=--api-addr 127.0.0.1:0 --aws-addr 127.0.0.1:0 --lock-nodes 0 --functions 1")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = programs, programs, programs
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		require.NoError(t, cmd.Start())

		lines := make(chan string, 100)
		go func() {
			defer close(lines)
			for scanner := bufio.NewScanner(user); scanner.Scan(); {
				lines <- scanner.Text()
			}
		}()
		var printed []string
		await := func(text string) {
			deadline := time.After(patience)
			for {
				select {
				case line, open := <-lines:
					require.True(t, open, "%q", printed)
					printed = append(printed, line)
					if strings.Contains(line, text) {
						return
					}
				case <-deadline:
					require.Fail(t, "no "+text, "%q", printed)
				}
			}
		}
		await("Ctrl-C stops it.")
		_, err := user.WriteString("\x03")
		require.NoError(t, err)
		await("stopping…")
		require.NoError(t, cmd.Wait(), "%q", printed)
	})
}
