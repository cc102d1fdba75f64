// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"fmt"
	"time"

	"github.com/weft-go/weft/examples/internal/cli"
)

// certificate reads the certificate and the key that the configuration names. The result is nil if it names none.
func (c *config) certificate() (*tls.Certificate, error) {
	if c.TLSCert == "" && c.TLSKey == "" {
		return nil, nil
	}
	if c.TLSCert == "" || c.TLSKey == "" {
		return nil, cli.Usagef("-tls-cert and -tls-key must be set together")
	}
	cert, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("tls: %s, %s: %w", c.TLSCert, c.TLSKey, err)
	}
	return &cert, nil
}

// use makes cert the certificate of new connections. Existing ones keep theirs.
func (p *program) use(cert *tls.Certificate) {
	if cert == nil {
		return
	}
	p.certificate.Store(cert)
	if until := cert.Leaf.NotAfter; time.Now().After(until) {
		p.log.Warn("certificate expired", "expired", until)
	} else {
		p.log.Info("certificate loaded", "expires", until)
	}
}

// tls returns the configuration of the server, or nil if it has no certificate.
func (p *program) tls() *tls.Config {
	if p.certificate.Load() == nil {
		return nil
	}
	return &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.certificate.Load(), nil }}
}
