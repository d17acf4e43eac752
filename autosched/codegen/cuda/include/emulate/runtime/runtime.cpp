// The runtime as one translation unit: its parts share headers that cost more to read than they do.
#include "schedule.inc"
#include "accesses.inc"
#include "meetings.inc"
#include "copies.inc"
#include "products.inc"
