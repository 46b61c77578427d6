// Receives webhooks of simgate with nothing but Go's own library: checks each delivery, handles each event once, and
// answers at once.
//
//	PORT=3000 WEBHOOK_SECRET=whsec_… go run receiver.go
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	tolerance = 5 * 60 // seconds
	largest   = 1_000_000
)

type event struct {
	ID       string
	Type     string
	Sequence int64
	Data     struct{ ID, OrderID, InvoiceID string }
}

// A shop keeps both in its database, and changes them in one transaction with what an event does there.
var (
	lock    sync.Mutex
	seen    = map[string]bool{}
	highest = map[string]int64{}
)

// handle only notes it down. Slow work comes after the answer.
func handle(e event) {
	about := "balance"
	for _, id := range []string{e.Data.InvoiceID, e.Data.OrderID, e.Data.ID} {
		if id != "" {
			about = id
		}
	}
	if e.Type == "webhook.test" {
		about = e.ID
	}
	note := ""
	if e.Sequence > highest[about] {
		highest[about] = e.Sequence
	} else {
		// Behind what we know, after a replay for example: do not write an old state over a newer one.
		note = " late"
	}
	fmt.Printf("%s %d %s %s%s\n", e.Type, e.Sequence, about, e.ID, note)
}

// trouble says what is wrong with a delivery: nothing, or why it must not be believed.
func trouble(key []byte, header http.Header, body []byte) string {
	id, timestamp := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if id == "" || err != nil {
		return "no id or no timestamp"
	}
	if age := time.Now().Unix() - seconds; age > tolerance || age < -tolerance {
		return "too old, or from the future"
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
	expected := mac.Sum(nil)
	// While a secret is being replaced there are two signatures.
	for _, signature := range strings.Fields(header.Get("webhook-signature")) {
		version, text, _ := strings.Cut(signature, ",")
		given, err := base64.StdEncoding.DecodeString(text)
		// hmac.Equal takes the same time wherever the two differ.
		if version == "v1" && err == nil && hmac.Equal(given, expected) {
			return ""
		}
	}
	return "no good signature"
}

func main() {
	port := os.Getenv("PORT")
	if port == "" {
		port = "3000"
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(os.Getenv("WEBHOOK_SECRET"), "whsec_"))
	if err != nil || len(key) == 0 {
		log.Fatal("WEBHOOK_SECRET must be a whsec_ secret")
	}
	receive := func(w http.ResponseWriter, r *http.Request) {
		// The signature is over these bytes, so they are checked before anything reads them as JSON.
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largest))
		if err != nil {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		if why := trouble(key, r.Header, body); why != "" {
			log.Print("refused: ", why)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var e event
		if err := json.Unmarshal(body, &e); err != nil {
			log.Print("failed: ", err)
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		// Deliveries come side by side. One that comes again has the same id, and is accepted, so that it is not sent a
		// third time.
		lock.Lock()
		defer lock.Unlock()
		if !seen[e.ID] {
			handle(e)
			seen[e.ID] = true
		}
		w.WriteHeader(http.StatusNoContent)
	}
	server := http.Server{
		Addr:        "127.0.0.1:" + port,
		Handler:     http.HandlerFunc(receive),
		ReadTimeout: 10 * time.Second,
		IdleTimeout: time.Minute,
	}
	log.Print("listening on ", server.Addr)
	log.Fatal(server.ListenAndServe())
}
