package fault

// NameMessage is the message for a field that is not a valid name.
const NameMessage = "must start with a letter or digit, hold only letters, digits and . _ : -, " +
	"and be 1 to 128 characters long"

// ValidName reports whether s can name a lock, semaphore, queue, policy, rule or job:
// [A-Za-z0-9][A-Za-z0-9._:-]{0,127}.
func ValidName(s string) bool {
	if len(s) == 0 || len(s) > 128 {
		return false
	}
	for i := range len(s) {
		if !nameByte(s[i], i == 0) {
			return false
		}
	}
	return true
}

func nameByte(c byte, first bool) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	case c == '.', c == '_', c == ':', c == '-':
		return !first
	default:
		return false
	}
}

// CheckName adds the field to the invalid inputs if its value s is not a valid name.
func (f *Fields) CheckName(field, s string) {
	if !ValidName(s) {
		f.Add(field, NameMessage)
	}
}
