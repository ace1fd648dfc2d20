package redisconn

import "strings"

// Slot returns the hash slot of a key in a Redis Cluster, 0 to 16383. The slot is the CRC16
// (XMODEM) modulo 16384 of the key's hash tag, or of the whole key if it has no hash tag. See
// https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#hash-tags.
func Slot(key string) int {
	if _, rest, found := strings.Cut(key, "{"); found {
		if tag, _, closed := strings.Cut(rest, "}"); closed && tag != "" {
			key = tag
		}
	}
	return int(crc16(key) % 16384)
}

func crc16(s string) uint16 {
	var crc uint16
	for i := range len(s) {
		crc ^= uint16(s[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}
