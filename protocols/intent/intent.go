// SPDX-License-Identifier: Apache-2.0

package intent

// Intent is what a harness knows about a request. The zero value says nothing.
type Intent struct {
	// Priority orders requests that wait: higher is sooner, 0 is normal.
	Priority int32
	// ExpectedOutput is how many tokens the answer will probably have; 0 means unknown.
	ExpectedOutput int
	// Session is the conversation the request belongs to.
	Session Session
	// Salt isolates prefix caches: requests with different salts share none. "" is the common cache.
	Salt string
}

// Session identifies a conversation of one agent.
type Session struct {
	// ID names the session; "" means none. IDs are compared byte by byte and are unique within a tenant.
	ID string
	// Parent is the session that started this one, "" for none. It is never equal to ID.
	Parent string
	// Harness is the program whose headers named the session: claude-code, codex, opencode, pi, dynamo; "" for none.
	Harness string
	// Final says that no further request of the session will come.
	Final bool
}
