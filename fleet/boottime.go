package fleet

import "time"

var began = time.Now()
