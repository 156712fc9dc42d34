package operator

import (
	"encoding/json"
	"net/http"

	"holdfast/engine/model"
)

// ExportPath is where the whole appliance is asked for, by a NewExport. The answer
// is the archive; when it ends without its last chunk, it is not whole. What
// keeps it from beginning is a Response.
const ExportPath = "/export"

// HeaderFailed says that the answer is a Response.
const HeaderFailed = "Holdfast-Failed"

// NewExport is a request for the whole appliance.
type NewExport struct {
	Operator string `json:"operator"` // the account that asks
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
		panic(http.ErrAbortHandler) // the only way to say that the answer is not whole
	default:
		w.Header().Set(HeaderFailed, "true")
		_ = json.NewEncoder(w).Encode(failure(err))
	}
}

// ExportCall is the operator's call to export the appliance.
func (a Appliance) ExportCall(operator string) *model.Call {
	return &model.Call{
		Operation: model.Operation{Action: model.ActionApplianceExport},
		Actor:     model.Actor{Type: model.ActorOperator, Name: operator},
	}
}

// firstWrite notes that something was written.
type firstWrite struct {
	http.ResponseWriter
	yes bool
}

// Write implements io.Writer.
func (f *firstWrite) Write(p []byte) (int, error) {
	f.yes = true
	return f.ResponseWriter.Write(p)
}
