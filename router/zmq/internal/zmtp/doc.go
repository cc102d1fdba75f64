// SPDX-License-Identifier: Apache-2.0

// Package zmtp implements the two ends of ZMTP 3.1 that a reader of cache events needs: SUB and DEALER sockets with the
// NULL mechanism, over connections that connect or listen.
//
//	greeting = FF 8 bytes 7F, version 3 1, mechanism in 20 bytes, as-server, 31 bytes
//	frame    = flags, length in 1 or 8 bytes, body; flags: 1 another frame follows, 2 the length has 8 bytes, 4 command
//	command  = length of the name in 1 byte, name, data
//	READY    = properties: length of the name in 1 byte, name, length of the value in 4 bytes, value
//
// Sources: 37/ZMTP (ZMTP 3.1), and 23/ZMTP (ZMTP 3.0) for older peers, which have no heartbeats and whose subscriptions
// are messages instead of commands. Peers of ZMTP 1 and 2 are refused.
package zmtp
