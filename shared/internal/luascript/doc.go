// Package luascript composes the Lua scripts that Redis runs from the files they are written in.
//
// Lua in Redis has no modules and no constants, and each function that a script creates costs time
// on every call. So names and shared code are resolved once, when a program starts, and Redis
// receives plain Lua. In return for a few rules a script's file can be read alone.
//
// # Files
//
// A folder holds scripts (name.lua), a prelude (prelude.lua) and, in subfolders, parts: code that
// scripts are composed of. A file opens with a header of comment lines:
//
//	-- Renews a lease.
//	--
//	-- KEYS  1 state
//	-- ARGV  1 token   2 ttl: µs
//	-- Reply the fence
//	-- Requires: prelude, wake/first
//
// Every script declares KEYS, ARGV and Reply. An entry is a number and a name, at the start of a
// line or after two spaces, and the numbers count from 1. KEYS.state and ARGV.ttl in the code stand
// for KEYS[1] and ARGV[2]; a name that the header does not declare is an error. Requires lists the
// files whose definitions and code come before the script's own, in this order and once each.
//
// # Definitions
//
// A line that starts with "define" names a text that replaces each use of the name:
//
//	define ${SHARED} S
//	define $fence(state) string.sub(state, 29, 44)
//	define $publish(channel, call)
//	  redis.call('ZADD', channel, 0, call)
//	  redis.call('PUBLISH', channel, call)
//
// ${NAME} is also replaced inside strings. $name(...) is replaced with its body, and the body's
// parameters with the arguments; an argument or a body on the same line that contains an operator
// is put in parentheses. ${parameter} in a body stands for the argument as it is written, also
// inside strings. A body on the following, indented lines is a sequence of statements.
//
// # Lines
//
// Comments are removed and every line keeps its place: line 40 of a script that requires no code is
// line 40 of its file. [Source.Position] returns the file and line for any other.
package luascript
