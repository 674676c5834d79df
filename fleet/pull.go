// This file fetches copies from other nodes, and gives them to others.

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier/internal/durablefs"
)

// Handler answers other nodes, at Options.Address. It needs a listener of its own that only the fleet's
// nodes reach: it gives everything away that the frontiers know.
func (n *Node) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /copies/{name}", func(w http.ResponseWriter, r *http.Request) {
		n.serveFile(w, r, listName)
	})
	mux.HandleFunc("GET /copies/{name}/{path...}", func(w http.ResponseWriter, r *http.Request) {
		n.serveFile(w, r, storeFolder+"/"+r.PathValue("path"))
	})
	mux.HandleFunc("GET /clock", func(w http.ResponseWriter, r *http.Request) { _ = json.NewEncoder(w).Encode(n.o.now()) })
	return mux
}

func (n *Node) serveFile(w http.ResponseWriter, r *http.Request, path string) {
	root, err := os.OpenRoot(filepath.Join(n.o.Dir, copiesFolder))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer root.Close()
	http.ServeFileFS(w, r, root.FS(), r.PathValue("name")+"/"+path)
}

// fetchCopies fetches each new copy.
func (n *Node) fetchCopies() {
	for n.life.Err() == nil {
		changed := n.view.wait()
		again := false
		for p := range n.o.Partitions {
			var row copyRow
			var has copyRow
			_, ok := get(n.view, fmt.Sprint(copyKey, p), &row)
			e, _ := get(n.view, haveOf(p, n.o.Node), &has)
			if !ok || e.Revision != 0 && has.Name == row.Name {
				continue
			}
			err := n.fetch(n.life, p, row)
			if err == nil {
				err = n.stateCopy(n.life, p)
			}
			if err != nil && n.life.Err() == nil {
				again = true
				n.log.Warn("fleet: a copy was not fetched", "copy", row.Name, "error", err)
			}
		}
		if again {
			pause(n.life, retry)
			continue
		}
		select {
		case <-n.life.Done():
		case <-changed:
		}
	}
}

// stateCopy says which copy this node has.
func (n *Node) stateCopy(ctx context.Context, partition int) error {
	all := n.copies(partition)
	if len(all) == 0 {
		return nil
	}
	return n.state(ctx, haveOf(partition, n.o.Node), all[0].copyRow)
}

// bestCopy returns the newest copy of a partition that can be had, the folder of its store here, and the last
// change of the newest copy there is: the log before that may be gone. The folder is empty if no copy can be had.
func (n *Node) bestCopy(ctx context.Context, partition int) (best copyRow, folder string, least uint64, err error) {
	e, err := n.o.Engine.Get(ctx, fmt.Sprint(copyKey, partition))
	if err != nil {
		return best, "", 0, err
	}
	if e.Revision != 0 {
		var row copyRow
		if err := json.Unmarshal(e.Value, &row); err != nil {
			return best, "", 0, err
		}
		least = row.Change
		if err := n.fetch(ctx, partition, row); err != nil { // an older one may do, as long as the log is there
			n.log.Warn("fleet: the newest copy was not fetched", "copy", row.Name, "error", err)
		}
	}
	if all := n.copies(partition); len(all) > 0 {
		return all[0].copyRow, filepath.Join(n.o.Dir, copiesFolder, all[0].Name, storeFolder), least, nil
	}
	return best, "", least, nil
}

// fetch makes sure that this node has a copy.
func (n *Node) fetch(ctx context.Context, partition int, row copyRow) error {
	n.fetching.take()
	defer n.fetching.release()
	if _, err := n.readList(row.Name); err == nil {
		return nil
	}
	errs := []error{fmt.Errorf("no node that is alive has copy %s", row.Name)}
	for _, m := range n.view.members() {
		if m.Node == n.o.Node {
			continue
		}
		err := n.fetchFrom(ctx, m.Address, partition, row)
		if err == nil {
			n.dropCopies(partition)
			return nil
		}
		errs = append(errs, fmt.Errorf("node %s: %w", m.Node, err))
	}
	return errors.Join(errs...)
}

func (n *Node) fetchFrom(ctx context.Context, address string, partition int, row copyRow) error {
	var list copyList
	err := n.request(ctx, address, "copies/"+row.Name, func(body io.Reader) error { return json.NewDecoder(body).Decode(&list) })
	if err != nil {
		return err
	}
	if list.copyRow != row || list.Partition != partition || list.Fleet != n.id {
		return fmt.Errorf("copy %s is another one", row.Name)
	}
	have := map[string]string{} // by hash
	for _, c := range n.copies(partition) {
		for _, f := range c.Files {
			have[f.Hash] = n.fileOf(c.Name, f.Path)
		}
	}
	return durablefs.MakeFolder(ctx, filepath.Join(n.o.Dir, copiesFolder, row.Name), func(dir string) error {
		for _, f := range list.Files {
			if !filepath.IsLocal(filepath.FromSlash(f.Path)) {
				return fmt.Errorf("a file of the copy has the name %q", f.Path)
			}
			to := filepath.Join(dir, storeFolder, filepath.FromSlash(f.Path))
			if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
				return err
			}
			if from := have[f.Hash]; from != "" && os.Link(from, to) == nil {
				continue
			}
			if err := n.fetchFile(ctx, address, row.Name, f, to); err != nil {
				return err
			}
		}
		return durablefs.WriteFile(filepath.Join(dir, listName), 0o644, func(w io.Writer) error { return json.NewEncoder(w).Encode(list) })
	})
}

func (n *Node) fetchFile(ctx context.Context, address, copy string, f listed, to string) error {
	dst, err := os.Create(to)
	if err != nil {
		return err
	}
	err = n.request(ctx, address, "copies/"+copy+"/"+f.Path, func(body io.Reader) error {
		_, err := io.Copy(dst, body)
		return err
	})
	if err = errors.Join(err, dst.Close()); err != nil {
		return err
	}
	if hash, err := hashOf(to); err != nil || hash != f.Hash {
		return errors.Join(err, fmt.Errorf("file %s of copy %s arrived damaged", f.Path, copy))
	}
	return nil
}

// request gets what the Handler of another node has. It gives up when nothing has come for callTime.
func (n *Node) request(ctx context.Context, address, path string, read func(io.Reader) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silent := time.AfterFunc(callTime, cancel)
	defer silent.Stop()
	target := strings.TrimSuffix(address, "/") + "/" + (&url.URL{Path: path}).EscapedPath()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return err
	}
	a, err := n.o.Client.Do(r)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", target, a.Status)
	}
	return read(heard{a.Body, silent})
}

// heard is a body whose bytes put off a timer.
type heard struct {
	io.Reader
	silent *time.Timer
}

func (h heard) Read(b []byte) (int, error) {
	n, err := h.Reader.Read(b)
	if n > 0 {
		h.silent.Reset(callTime)
	}
	return n, err
}
