package web

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/engine/model"
)

// adviceItem is a recommendation as pages show it.
type adviceItem struct {
	model.Recommendation
	// About and Remedy are pages: of the resource, and where the user can act.
	About, Remedy pageLink
	Facts         []fact
}

// pageLink is a link to a page of the console; without Href it is only a name.
type pageLink struct{ Href, Name string }

// fact is a figure in support of a recommendation.
type fact struct{ Name, Value string }

func newAdvice(all []model.Recommendation) []adviceItem {
	items := make([]adviceItem, len(all))
	for i, r := range all {
		items[i] = adviceItem{Recommendation: r, About: pageLinkOf(r), Remedy: remedyFor(r), Facts: factsOf(r.Evidence)}
	}
	return items
}

// pageLinkOf returns the page of the resource that a recommendation is about.
func pageLinkOf(r model.Recommendation) pageLink {
	switch r.Resource.Type {
	case model.ResourceDatabase:
		return pageLink{"/databases/" + r.Resource.ID, r.Resource.Name}
	case model.ResourceBackup:
		if database := databaseOf(r); database != "" {
			return pageLink{"/databases/" + database + "/backups/" + r.Resource.ID, r.Resource.Name}
		}
	case model.ResourceKey:
		return pageLink{"/keys/" + r.Resource.ID, r.Resource.Name}
	case model.ResourceObject:
		return pageLink{"/buckets/" + r.Resource.ID, r.Resource.Name}
	}
	return pageLink{Name: r.Resource.Name}
}

// databaseOf returns the id of the database that a recommendation is about,
// directly or through one of its backups; "" if there is none.
func databaseOf(r model.Recommendation) string {
	if r.Resource.Type == model.ResourceDatabase {
		return r.Resource.ID
	}
	if r.Action == nil {
		return ""
	}
	rest, ok := strings.CutPrefix(r.Action.Path, "/v1/databases/")
	id, _, _ := strings.Cut(rest, "/")
	if !ok {
		return ""
	}
	return id
}

// remedyFor returns the page on which a user can do what the recommended
// request does.
func remedyFor(r model.Recommendation) pageLink {
	if r.Action == nil {
		if database := databaseOf(r); database != "" && r.Category == model.CategoryBackup {
			return pageLink{"/databases/" + database + "/backups", "Go to its backups"}
		}
		return pageLink{}
	}
	if database := databaseOf(r); database != "" {
		path := "/databases/" + database
		switch {
		case strings.HasSuffix(r.Action.Path, "/backups"), strings.HasSuffix(r.Action.Path, "/recovery"):
			return pageLink{path + "/backups", "Go to its backups"}
		case strings.HasSuffix(r.Action.Path, "/allowlist"):
			return pageLink{path + "/access", "Go to its network"}
		case strings.HasSuffix(r.Action.Path, "/rls"):
			return pageLink{path + "/tables", "Go to its row security"}
		case strings.HasPrefix(r.Action.Path, "/v1"+path+"/extensions"): // one of them, or a new one
			return pageLink{path + "/extensions", "Go to its extensions"}
		case strings.HasPrefix(r.Action.Path, "/v1"+path+"/replication"):
			return pageLink{path + "/replication", "Go to its replication"}
		case strings.HasSuffix(r.Action.Path, "/restart"):
			return pageLink{path + "/settings", "Go to its settings"}
		}
	}
	switch r.Action.Path {
	case "/v1/account/api-keys":
		return pageLink{"/keys", "Go to the API keys"}
	case "/v1/account/usage":
		return pageLink{"/settings", "Go to what is used"}
	}
	return pageLink{}
}

// factsOf formats the evidence of a recommendation for people.
func factsOf(evidence map[string]any) []fact {
	facts := make([]fact, 0, len(evidence))
	for _, name := range slices.Sorted(maps.Keys(evidence)) {
		text, unit := name, ""
		for _, suffix := range []string{"_bytes", "_seconds", "_ms"} {
			if stem, ok := strings.CutSuffix(name, suffix); ok {
				text, unit = stem, suffix
			}
		}
		if value := figure(evidence[name], unit); value != "" {
			facts = append(facts, fact{humanize(text), value})
		}
	}
	return facts
}

// figure formats one value; unit is the suffix of its name that states its
// unit.
func figure(value any, unit string) string {
	switch v := value.(type) {
	case int64:
		switch unit {
		case "_bytes":
			return formatBytes(v)
		case "_seconds":
			return span(time.Duration(v) * time.Second)
		}
		return thousands(v)
	case int:
		return figure(int64(v), unit)
	case float64:
		if unit == "_ms" {
			return formatSeconds(v / 1000)
		}
		return strconv.FormatFloat(v, 'g', 3, 64)
	case time.Time, *time.Time:
		return stamp(v)
	case []string:
		return strings.Join(v, ", ")
	default:
		return printable(fmt.Sprint(v), 500)
	}
}

// advicePage is the number of recommendations on a page.
const advicePage = 20

// adviceData is what advice.html shows.
type adviceData struct {
	listPage[model.Recommendation]
	Of pageLink // the database, if the page is limited to one
}

// Advice returns the recommendations of this page in displayable form.
func (d adviceData) Advice() []adviceItem { return newAdvice(d.Items) }

func (req *request) advice() (answer, error) {
	asked := req.r.URL.Query()
	all, err := req.engine.Insight.Recommendations(req.call)
	if err != nil {
		return answer{}, err
	}
	about := req.call.Resource
	data := adviceData{}
	if id := asked.Get("database"); id != "" {
		db, err := req.engine.Databases.Get(req.call, id)
		if err != nil {
			return answer{}, err
		}
		req.call.Resource = about
		data.Of = pageLink{"/databases/" + db.ID, db.Name}
		all = adviceOn(all, db.ID)
	}
	data.listPage = listPageOf(all, asked, advicePage)
	return answer{page: "advice.html", title: "What needs attention", data: data}, nil
}

// adviceOn returns the recommendations about one database.
func adviceOn(all []model.Recommendation, database string) []model.Recommendation {
	return slices.DeleteFunc(slices.Clone(all), func(r model.Recommendation) bool { return databaseOf(r) != database })
}

// mostSevere is the number of recommendations on pages about other things.
const mostSevere = 4

// adviceBrief holds the most severe recommendations, and the number of all.
type adviceBrief struct {
	Items []adviceItem
	Count int
	More  string // the page with all, "" if these are all
}

// newAdviceBrief shortens a list of recommendations for the page here.
func newAdviceBrief(all []model.Recommendation, here, path string) adviceBrief {
	brief := adviceBrief{Items: newAdvice(all[:min(len(all), mostSevere)]), Count: len(all)}
	for i := range brief.Items {
		if brief.Items[i].About.Href == here { // the link would lead to this page
			brief.Items[i].About = pageLink{}
		}
	}
	if len(all) > mostSevere {
		brief.More = path
	}
	return brief
}
