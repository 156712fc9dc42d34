// Package server is the appliance's face to the network: the listener with
// the API, the downloads and the console behind it, and the operator's socket.
package server
