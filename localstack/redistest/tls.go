package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicehq/sluice/localstack/redisserver"
)

// Certificate creates a self-signed certificate for the addresses. It returns the server's files
// and a client configuration that trusts only this certificate.
func Certificate(t testing.TB, addresses ...string) (*redisserver.TLSFiles, *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	fail(t, err)
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "sluice test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		// A node of a cluster also presents the certificate as a client, when it connects to
		// another node.
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, a := range addresses {
		if ip := net.ParseIP(a); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, a)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	fail(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	fail(t, err)

	folder := t.TempDir()
	files := &redisserver.TLSFiles{Cert: filepath.Join(folder, "cert.pem"), Key: filepath.Join(folder, "key.pem"),
		CA: filepath.Join(folder, "cert.pem")}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	fail(t, os.WriteFile(files.Cert, text, 0o600))
	fail(t, os.WriteFile(files.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(text)
	return files, &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}
}

func fail(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
