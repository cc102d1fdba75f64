// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weft-go/weft/protocols/apierr"
)

// This file checks that engines are what the gateway is configured for (see Engine.Check). An engine is suspect if it may have
// been restarted, with other settings or as another engine: after a failed request or probe, or an event that its cache is empty.
// It is checked before it gets requests.

// ErrContradiction is matched by the errors of Engine.Check that report a difference from the configuration.
var ErrContradiction = errors.New("the engine contradicts the configuration")

const (
	checkInterval = time.Minute // between the checks of an engine that is not suspect
	checkTimeout  = 30 * time.Second
)

// identity is what is known of whether an engine is the one of the configuration.
type identity struct {
	check  func(context.Context) error // nil if it is not checked
	asking slots                       // of one check at a time
	doubts atomic.Uint64               // times at which it became suspect

	// Under fleet.mu:
	settled       uint64    // doubts before the last check that succeeded; the engine is suspect if there were more since
	checked       time.Time // begin of that check
	contradiction error     // nil if there is none
}

// verify checks an engine if it is suspect, or if age is not 0 and its last check is older. It returns nil if the engine may
// get requests. Other errors than contradictions matter only for suspect engines.
func (f *fleet) verify(ctx context.Context, e *engine, age time.Duration) error {
	due := func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return e.doubts.Load() != e.settled || age > 0 && time.Since(e.checked) >= age
	}
	if e.check == nil || !due() {
		return nil
	}
	if err := e.asking.take(ctx); err != nil {
		return err
	}
	defer e.asking.give()
	if !due() { // another request has checked it
		return nil
	}
	begun, doubts := time.Now(), e.doubts.Load()
	timed, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	err := e.check(timed)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case errors.Is(err, ErrContradiction):
		if e.contradiction == nil || e.contradiction.Error() != err.Error() {
			f.log.Error("engine contradicts the configuration", "engine", e.name, "err", err)
		}
		e.contradiction = err
		e.doubts.Add(1) // it is suspect until a check succeeds
		f.eject(e, err.Error())
		f.enlist()
		return apierr.EngineFailed(err)
	case err == nil:
		e.contradiction, e.settled, e.checked = nil, doubts, begun
		return nil
	case doubts == e.settled:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return apierr.EngineFailed(fmt.Errorf("%w: %w", errUnreachable, err))
}
