package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// The parts of CycloneDX 1.6 that are needed (https://cyclonedx.org/docs/1.6/json/). No time is
// told: it would make two builds differ.
type bom struct {
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Serial       string       `json:"serialNumber"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	Purl       string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

// module is a Go module in a program; the standard library counts as one.
type module struct{ path, version, sum string }

func (m module) ref() string {
	segments := strings.Split(m.path, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return "pkg:golang/" + strings.Join(segments, "/") + "@" + url.PathEscape(m.version)
}

// modulesOf are the modules of a program besides Sluice itself.
func modulesOf(info *buildinfo.BuildInfo) []module {
	out := []module{{path: "std", version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, d := range info.Deps {
		if d.Replace != nil {
			d = d.Replace
		}
		out = append(out, module{path: d.Path, version: d.Version, sum: d.Sum})
	}
	return out
}

// bom is the bill of materials of all zips: each zip is a component that depends on its modules.
func (r release) bom(version string) bom {
	root := component{Type: "application", Ref: "sluice", Name: "sluice", Version: version}
	out := bom{Format: "CycloneDX", Spec: "1.6", Serial: r.serial(version), Version: 1,
		Metadata: metadata{Component: root}}
	var zips []string
	for _, p := range r {
		ref := "zip:" + p.path()
		zips = append(zips, ref)
		out.Components = append(out.Components, component{
			Type: "application", Ref: ref, Name: p.path(), Version: version,
			Hashes: []hash{{Algorithm: "SHA-256", Content: p.digest()}},
		})
		depends := dependency{Ref: ref}
		for _, m := range modulesOf(p.info) {
			depends.DependsOn = append(depends.DependsOn, m.ref())
		}
		slices.Sort(depends.DependsOn)
		out.Dependencies = append(out.Dependencies, depends)
	}
	for _, m := range r.modules() {
		c := component{Type: "library", Ref: m.ref(), Name: m.path, Version: m.version, Purl: m.ref()}
		if m.sum != "" {
			c.Properties = []property{{Name: "go.sum", Value: m.sum}}
		}
		out.Components = append(out.Components, c)
	}
	out.Dependencies = append([]dependency{{Ref: root.Ref, DependsOn: zips}}, out.Dependencies...)
	return out
}

// serial is a UUID (version 8) that is a function of what is described.
func (r release) serial(version string) string {
	var described strings.Builder
	described.WriteString(version)
	for _, p := range r {
		described.WriteString("\n" + p.path() + " " + p.digest())
	}
	sum := sha256.Sum256([]byte(described.String()))
	id := sum[:16]
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
