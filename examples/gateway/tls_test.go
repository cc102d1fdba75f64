// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// writeCertificate writes a certificate for localhost and its key, and returns a pool with it.
func writeCertificate(t *testing.T, certFile, keyFile string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	return pool
}

// TestTLS checks that the gateway speaks TLS, and that SIGHUP replaces the certificate unless the new one is invalid.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	first := writeCertificate(t, certFile, keyFile)

	sink := &logSink{lines: make(chan string, 1000)}
	at, cancel, ended := startProgram(t, io.Discard, sink, "-listen", "127.0.0.1:0", "-model", "m", "-engine", "embedded=local", "-tool-call-parser", "hermes", "-tls-cert", certFile, "-tls-key", keyFile)
	get := func(trust *x509.CertPool) error {
		t.Helper()
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust, ServerName: "localhost"}}
		defer tr.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+at+"/v1/models", nil)
		require.NoError(t, err)
		resp, err := tr.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
			require.Equal(t, 200, resp.StatusCode)
		}
		return err
	}
	hangUp := func() {
		t.Helper()
		self, err := os.FindProcess(os.Getpid())
		require.NoError(t, err)
		require.NoError(t, self.Signal(syscall.SIGHUP))
	}
	require.NoError(t, get(first))

	second := writeCertificate(t, certFile, keyFile)
	require.NoError(t, get(first), "not reloaded yet")
	hangUp()
	sink.await(t, "configuration reloaded")
	require.NoError(t, get(second))
	require.Error(t, get(first))

	require.NoError(t, os.WriteFile(keyFile, []byte("broken"), 0o600))
	hangUp()
	require.Contains(t, sink.await(t, "configuration not reloaded"), "key.pem")
	require.NoError(t, get(second))

	cancel()
	require.NoError(t, <-ended)
}

func TestTLSErrors(t *testing.T) {
	for _, args := range [][]string{{"-tls-cert", "x"}, {"-tls-key", "x"}, {"-tls-cert", "nowhere", "-tls-key", "nowhere"}} {
		err := run(t.Context(), append([]string{"-model", "m", "-engine", "embedded=local", "-tool-call-parser", "hermes"}, args...), io.Discard, io.Discard, nil)
		require.ErrorContains(t, err, "tls")
	}
}
