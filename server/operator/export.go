package operator

import (
	"encoding/json"
	"net/http"

	"holdfast/engine/model"
)

// ExportPath is the path for an export of the whole appliance, requested by a NewExport. The response is the
// archive; if it ends without its last chunk, it is incomplete. If the export cannot begin, the response is a
// Response.
const ExportPath = "/export"

// HeaderFailed marks a response as a Response.
const HeaderFailed = "Holdfast-Failed"

// NewExport is a request to export the whole appliance.
type NewExport struct {
	Operator string `json:"operator"` // the requesting account
}

func (a Appliance) serveExport(w http.ResponseWriter, r *http.Request) {
	var in NewExport
	if err := decode(http.MaxBytesReader(w, r.Body, maxRequest), &in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	began := &firstWrite{ResponseWriter: w}
	call := a.ExportCall(in.Operator)
	err := a.ApplianceExport(r.Context(), call, began)
	a.Core.Finish(call, err)
	switch {
	case err == nil:
	case began.yes:
		panic(http.ErrAbortHandler) // the only way to signal that the response is incomplete
	default:
		w.Header().Set(HeaderFailed, "true")
		_ = json.NewEncoder(w).Encode(failure(err))
	}
}

// ExportCall returns the operator's call for exporting the appliance.
func (a Appliance) ExportCall(operator string) *model.Call {
	return &model.Call{
		Operation: model.Operation{Action: model.ActionApplianceExport},
		Actor:     model.Actor{Type: model.ActorOperator, Name: operator},
	}
}

// firstWrite records whether anything was written.
type firstWrite struct {
	http.ResponseWriter
	yes bool
}

// Write implements io.Writer.
func (f *firstWrite) Write(p []byte) (int, error) {
	f.yes = true
	return f.ResponseWriter.Write(p)
}
