// Package luascript composes Lua scripts for Redis from source files.
//
// Lua in Redis has no modules and no constants, and each function that a script creates costs time
// on every call. So this package resolves names and shared code once, at the first use of a script,
// and Redis receives plain Lua. A script declares its keys, its arguments and the files that it
// requires, so that its file can be read on its own.
//
// # Files
//
// A folder holds scripts (name.lua), a prelude (prelude.lua) and, in subfolders, parts: code that
// several scripts include. A file starts with a header of comment lines:
//
//	-- Renews a lease.
//	--
//	-- KEYS  1 state
//	-- ARGV  1 token   2 ttl: µs
//	-- Reply the fence
//	-- Requires: prelude, wake/first
//
// Every script declares KEYS, ARGV and Reply. An entry of KEYS or ARGV is a number and a name, at
// the start of a line or after two spaces. The numbers start at 1 and have no gaps. In the code,
// KEYS.state becomes KEYS[1] and ARGV.ttl becomes ARGV[2]; a name that the header does not declare
// is an error. Requires lists the files that the script needs. Their definitions and code come
// before the script's own, in the listed order, each file once.
//
// # Definitions
//
// A line that starts with "define" defines a name and the text that replaces each use of the name:
//
//	define ${SHARED} S
//	define $fence(state) string.sub(state, 29, 44)
//	define $publish(channel, call)
//	  redis.call('ZADD', channel, 0, call)
//	  redis.call('PUBLISH', channel, call)
//
// ${NAME} is also replaced inside strings. A call $name(...) is replaced with the body of the
// definition, and each parameter in the body with its argument. An argument that contains an
// operator is put in parentheses. So is a body that contains an operator, if the body is on the
// same line as its "define". In a body, ${parameter} is replaced with the argument as it is
// written, also inside strings. A body on the following, indented lines is a sequence of
// statements.
//
// # Lines
//
// Comments are removed, but their lines remain as empty lines. So if a script requires no code,
// line 40 of the composed script is line 40 of its file. If required files add code, the lines
// move; [Source.Position] returns the file and the line from which a line of the composed script
// comes.
package luascript
