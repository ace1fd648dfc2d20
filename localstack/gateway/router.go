package gateway

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/shared/routes"
)

// router selects the most specific route, like API Gateway. A full match precedes a greedy match,
// and a greedy match precedes $default. A literal segment precedes a parameter. For equal paths, a
// method precedes ANY.
type router struct{ routes []pattern }

type pattern struct {
	routes.Route
	segments []string
	greedy   bool
}

func newRouter(all []routes.Route) router {
	var r router
	for _, route := range all {
		p := pattern{Route: route, segments: strings.Split(strings.TrimPrefix(route.Path, "/"), "/")}
		p.greedy = strings.HasSuffix(route.Path, "+}")
		r.routes = append(r.routes, p)
	}
	slices.SortStableFunc(r.routes, func(a, b pattern) int { return strings.Compare(a.rank(), b.rank()) })
	return r
}

// rank returns a key that sorts the most specific pattern first.
func (p pattern) rank() string {
	if p.Path == routes.Default {
		return "3"
	}
	var b strings.Builder
	b.WriteByte('1')
	if p.greedy {
		b.Reset()
		b.WriteByte('2')
	}
	for _, s := range p.segments {
		if strings.HasPrefix(s, "{") {
			b.WriteByte('p')
		} else {
			b.WriteByte('l')
		}
	}
	if p.Method == routes.Any {
		b.WriteByte('z')
	}
	return b.String()
}

func (r router) match(req *http.Request) (routes.Route, map[string]string, bool) {
	path := strings.Split(strings.TrimPrefix(req.URL.EscapedPath(), "/"), "/")
	for _, p := range r.routes {
		if p.Method != routes.Any && p.Method != req.Method {
			continue
		}
		if params, ok := p.match(path); ok {
			return p.Route, params, true
		}
	}
	return routes.Route{}, nil, false
}

func (p pattern) match(path []string) (map[string]string, bool) {
	if p.Path == routes.Default {
		return nil, true
	}
	if len(path) < len(p.segments) || (len(path) > len(p.segments) && !p.greedy) {
		return nil, false
	}
	params := make(map[string]string)
	for i, s := range p.segments {
		value := path[i]
		name, isParam := strings.CutPrefix(s, "{")
		switch {
		case !isParam && s != value, value == "":
			return nil, false
		case isParam && strings.HasSuffix(name, "+}"):
			value = strings.Join(path[i:], "/")
			name = strings.TrimSuffix(name, "+}")
		case isParam:
			name = strings.TrimSuffix(name, "}")
		default:
			continue
		}
		decoded, err := url.PathUnescape(value)
		if err != nil {
			return nil, false
		}
		params[name] = decoded
	}
	return params, true
}
