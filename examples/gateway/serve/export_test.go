// SPDX-License-Identifier: Apache-2.0

package serve

import "net/http"

// SetEngines replaces the connections to all engines.
func (g *Gateway) SetEngines(rt http.RoundTripper) {
	for _, e := range g.fleet.engines {
		e.client = &http.Client{Transport: rt}
	}
}
