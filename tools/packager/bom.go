package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/CycloneDX/cyclonedx-gomod/pkg/generate/bin"
	"github.com/google/uuid"
	"github.com/rs/zerolog"
)

// uuidFromDigest is UUID version 8 (RFC 9562): a UUID from a custom source, here a SHA-256 digest.
const uuidFromDigest = 8

// billOf returns the bill of materials of the package p, as CycloneDX 1.6 in JSON. program is the
// path of the packaged executable, which contains the list of its modules.
//
// Two builds of one commit produce the same bill: the bill contains no timestamp, and its serial
// number depends only on the package's path, digest and version.
func billOf(p packed, program, version string) ([]byte, error) {
	generator, err := bin.NewGenerator(program,
		bin.WithIncludeStdlib(true),
		bin.WithVersionOverride(version),
		bin.WithShortPURLS(true), // long PURLs contain the architecture of the build machine
		bin.WithLogger(zerolog.Nop()))
	if err != nil {
		return nil, fmt.Errorf("error preparing the bill of materials of %s: %w", p.function, err)
	}
	bill, err := generator.Generate()
	if err != nil {
		return nil, fmt.Errorf("error generating the bill of materials of %s: %w", p.function, err)
	}

	identity := []byte(version + "\n" + p.path(".zip") + "\n" + p.digest())
	bill.SerialNumber = uuid.NewHash(sha256.New(), uuid.Nil, identity, uuidFromDigest).URN()
	main := bill.Metadata.Component
	main.Name = p.path(".zip")
	main.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: p.digest()}}

	addDependencies(bill)

	var out bytes.Buffer
	encoder := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true)
	if err := encoder.EncodeVersion(bill, cdx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("error encoding the bill of materials of %s: %w", p.function, err)
	}
	return out.Bytes(), nil
}

// addDependencies makes the main component depend on every listed component. The generator's own
// dependencies lack the standard library, because the linker does not record it as a module.
func addDependencies(bill *cdx.BOM) {
	var refs []string
	for _, c := range *bill.Components {
		refs = append(refs, c.BOMRef)
	}
	for i, d := range *bill.Dependencies {
		if d.Ref == bill.Metadata.Component.BOMRef {
			(*bill.Dependencies)[i].Dependencies = &refs
		}
	}
}

// hexDigest returns the SHA-256 digest of data in hexadecimal.
func hexDigest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
