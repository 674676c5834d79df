package record

// Pieces is memory that bodies are written to. What was written does not move.
//
// The zero value is empty. Not safe for concurrent use.
type Pieces struct {
	piece []byte
	Bytes int // of all that was written
}

// Reused returns empty Pieces with the memory of the last piece, which nothing may be used of any more.
func (p *Pieces) Reused() Pieces { return Pieces{piece: p.piece[:0]} }

// pieceSize is the size of the pieces in which many bytes are kept.
const pieceSize = 256 << 10

// room returns the present piece, with room for n bytes behind its content. What was handed
// out does not move: where the room does not suffice, a new piece begins. A buffer that grew
// would be kept, in each of the sizes that it had, by what was handed out of it before.
func (p *Pieces) room(n int) []byte {
	if n > cap(p.piece)-len(p.piece) {
		p.piece = make([]byte, 0, max(n, min(2*cap(p.piece), pieceSize), 1<<10))
	}
	return p.piece
}

// wrote records that the piece has more content, and returns what is new.
func (p *Pieces) wrote(buf []byte) []byte {
	at := len(p.piece)
	p.piece = buf
	p.Bytes += len(buf) - at
	return buf[at:len(buf):len(buf)]
}

// Encode writes b, and url if b has no URL, and returns its bytes.
func (p *Pieces) Encode(b *Body, url string) []byte {
	return p.wrote(append(b.Append(p.room(b.Most()+len(url))), url...))
}

// Keep copies encoded bytes and returns them there.
func (p *Pieces) Keep(b []byte) []byte { return p.wrote(append(p.room(len(b)), b...)) }

// Unwrite takes back the latest bytes that Encode or Keep returned.
func (p *Pieces) Unwrite(b []byte) {
	p.piece = p.piece[:len(p.piece)-len(b)]
	p.Bytes -= len(b)
}
