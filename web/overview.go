package web

import (
	"holdfast/engine/insight"
)

// overviewData is what overview.html shows.
type overviewData struct {
	insight.Status
	Projects map[string]string // names by id
	Advice   adviceBrief
}

func (req *request) overview() (answer, error) {
	status, err := req.engine.Insight.AgentStatus(req.call)
	if err != nil {
		return answer{}, err
	}
	data := overviewData{Status: status, Projects: map[string]string{}, Advice: newAdviceBrief(status.Recommendations, "/", "/advice")}
	for _, p := range status.Projects {
		data.Projects[p.ID] = p.Name
	}
	return answer{page: "overview.html", title: "Overview", data: data, live: len(status.Operations) > 0}, nil
}
