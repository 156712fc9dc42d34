// Package server is the appliance's network interface: the listener that serves the API, the downloads and the
// console, and the operator's socket.
package server
