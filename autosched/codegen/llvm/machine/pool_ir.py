"""The thread pool's module as LLVM IR text; `runtime` says what it does."""

from __future__ import annotations

import sys

from autosched.backends import host_backend

PARALLEL_FOR = "autosched_parallel_for"
SPINS = 4000  # pauses before sleeping: about 50 to 150 microseconds, longer than the gap between two calls of a timer
JOIN_SPINS = 2000  # pauses before the caller yields its core to a worker that has none

_IR = """
@ticket = internal global i64 0, align 128
@done = internal global i64 0, align 128
@work.f = internal global ptr null, align 128
@work.context = internal global ptr null
@work.n = internal global i64 0
@sleepers = internal global i32 0, align 128
@busy = internal global i32 0, align 128
@stopping = internal global i32 0, align 128
@workers = internal global i32 0
@ready = internal global i32 0
@pins = internal global i32 0
@pin = internal global [256 x i32] zeroinitializer
@threads = internal global [256 x i64] zeroinitializer
@mutex = internal global [128 x i8] zeroinitializer, align 64
@condition = internal global [128 x i8] zeroinitializer, align 64

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @sched_yield()
PAUSE_DECLARATION

; Whether a worker of this number may take an iteration of the ticket.
define internal i1 @open(i64 %ticket, i64 %number) alwaysinline {
  %left = and i64 %ticket, 4294967295
  %some = icmp ne i64 %left, 0
  %shifted = lshr i64 %ticket, 32
  %width = and i64 %shifted, 255
  %mine = icmp ult i64 %number, %width
  %both = and i1 %some, %mine
  ret i1 %both
}

; Take iterations until none is left.
define internal void @take(i64 %number) {
start:
  br label %look
look:
  %t = load atomic i64, ptr @ticket acquire, align 8
  %open = call i1 @open(i64 %t, i64 %number)
  br i1 %open, label %claim, label %out
claim:
  %less = sub i64 %t, 1
  %pair = cmpxchg ptr @ticket, i64 %t, i64 %less acq_rel monotonic, align 8
  %won = extractvalue { i64, i1 } %pair, 1
  br i1 %won, label %run, label %look
run:
  ; The region cannot end before this iteration is counted, so what it publishes is stable here.
  %f = load ptr, ptr @work.f
  %context = load ptr, ptr @work.context
  %n = load i64, ptr @work.n
  %left = and i64 %t, 4294967295
  %i = sub i64 %n, %left
  call void %f(ptr %context, i64 %i)
  %old = atomicrmw add ptr @done, i64 1 release, align 8
  br label %look
out:
  ret void
}

define internal ptr @worker(ptr %argument) {
start:
  %number = ptrtoint ptr %argument to i64
  br label %again
again:
  call void @take(i64 %number)
  br label %spin
spin:
  %k = phi i32 [ 0, %again ], [ %more, %next ]
  %t = load atomic i64, ptr @ticket acquire, align 8
  %open = call i1 @open(i64 %t, i64 %number)
  br i1 %open, label %again, label %idle
idle:
  %stop = load atomic i32, ptr @stopping acquire, align 4
  %stopped = icmp ne i32 %stop, 0
  br i1 %stopped, label %out, label %next
next:
  PAUSE
  %more = add i32 %k, 1
  %tired = icmp eq i32 %more, SPINS
  br i1 %tired, label %sleep, label %spin
sleep:
  %l = call i32 @pthread_mutex_lock(ptr @mutex)
  ; Either the caller sees this sleeper after it published, or the sleeper sees the ticket: both are seq_cst.
  %s = atomicrmw add ptr @sleepers, i32 1 seq_cst, align 4
  br label %check
check:
  %t2 = load atomic i64, ptr @ticket seq_cst, align 8
  %open2 = call i1 @open(i64 %t2, i64 %number)
  %stop2 = load atomic i32, ptr @stopping seq_cst, align 4
  %stopped2 = icmp ne i32 %stop2, 0
  %wake = or i1 %open2, %stopped2
  br i1 %wake, label %woken, label %wait
wait:
  %w = call i32 @pthread_cond_wait(ptr @condition, ptr @mutex)
  br label %check
woken:
  %s2 = atomicrmw sub ptr @sleepers, i32 1 seq_cst, align 4
  %u = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %again
out:
  ret ptr null
}

define internal void @wake() {
start:
  %s = load atomic i32, ptr @sleepers seq_cst, align 4
  %any = icmp ne i32 %s, 0
  br i1 %any, label %call, label %out
call:
  %l = call i32 @pthread_mutex_lock(ptr @mutex)
  %b = call i32 @pthread_cond_broadcast(ptr @condition)
  %u = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %out
out:
  ret void
}

; Create workers up to `wanted`; called by the thread that holds @busy.
define internal void @grow(i32 %wanted) {
start:
  %r = load i32, ptr @ready
  %first = icmp eq i32 %r, 0
  br i1 %first, label %init, label %loop
init:
  %m = call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  %c = call i32 @pthread_cond_init(ptr @condition, ptr null)
  store i32 1, ptr @ready
  br label %loop
loop:
  %have = load i32, ptr @workers
  %enough = icmp uge i32 %have, %wanted
  br i1 %enough, label %out, label %create
create:
  %at = zext i32 %have to i64
  %slot = getelementptr i64, ptr @threads, i64 %at
  %number = add i64 %at, 1
  %argument = inttoptr i64 %number to ptr
  %failed = call i32 @pthread_create(ptr %slot, ptr null, ptr @worker, ptr %argument)
  %ok = icmp eq i32 %failed, 0
  br i1 %ok, label %count, label %out
count:
  %now = add i32 %have, 1
  store i32 %now, ptr @workers
  %thread = load i64, ptr %slot
  call void @place(i64 %thread, i64 %number)
  br label %loop
out:
  ret void
}

PLACE

define internal i1 @lock() {
  %pair = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic, align 4
  %won = extractvalue { i32, i1 } %pair, 1
  ret i1 %won
}

define void @autosched_parallel_for(ptr %f, ptr %context, i64 %n, i32 %threads) {
start:
  %alone = icmp slt i32 %threads, 2
  %short = icmp slt i64 %n, 2
  %huge = icmp sgt i64 %n, 4294967295
  %a = or i1 %alone, %short
  %b = or i1 %a, %huge
  br i1 %b, label %inline, label %try
try:
  %mine = call i1 @lock()
  br i1 %mine, label %publish, label %inline
publish:
  %capped = call i32 @llvm.umin.i32(i32 %threads, i32 255)  ; the width has eight bits in the ticket
  %wanted = sub i32 %capped, 1
  %have = load i32, ptr @workers
  %few = icmp ult i32 %have, %wanted
  br i1 %few, label %more, label %post
more:
  call void @grow(i32 %wanted)
  br label %post
post:
  store ptr %f, ptr @work.f
  store ptr %context, ptr @work.context
  store i64 %n, ptr @work.n
  store atomic i64 0, ptr @done monotonic, align 8
  %old = load atomic i64, ptr @ticket monotonic, align 8
  %generation = and i64 %old, -1099511627776
  %following = add i64 %generation, 1099511627776
  %width = zext i32 %capped to i64
  %placed = shl i64 %width, 32
  %half = or i64 %following, %placed
  %new = or i64 %half, %n
  store atomic i64 %new, ptr @ticket seq_cst, align 8
  call void @wake()
  call void @take(i64 0)
  br label %join
join:
  %k = phi i32 [ 0, %post ], [ %again, %step ]
  %d = load atomic i64, ptr @done acquire, align 8
  %all = icmp eq i64 %d, %n
  br i1 %all, label %finish, label %hold
hold:
  %tired = icmp ugt i32 %k, JOIN_SPINS
  br i1 %tired, label %give, label %short.wait
give:
  %y = call i32 @sched_yield()
  br label %step
short.wait:
  PAUSE
  br label %step
step:
  %again = add i32 %k, 1
  br label %join
finish:
  store atomic i32 0, ptr @busy release, align 4
  ret void
inline:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %body, label %out
body:
  %i = phi i64 [ 0, %inline ], [ %i.next, %body ]
  call void %f(ptr %context, i64 %i)
  %i.next = add i64 %i, 1
  %last = icmp eq i64 %i.next, %n
  br i1 %last, label %out, label %body
out:
  ret void
}

; Create the workers of `threads` now, pinned to cpus[1], cpus[2], … where `count` is not 0.
define void @autosched_pool_start(i32 %threads, ptr %cpus, i32 %count) {
start:
  %mine = call i1 @lock()
  br i1 %mine, label %copy, label %out
copy:
  %known = call i32 @llvm.umin.i32(i32 %count, i32 256)
  store i32 %known, ptr @pins
  %size = zext i32 %known to i64
  %bytes = mul i64 %size, 4
  call void @llvm.memcpy.p0.p0.i64(ptr @pin, ptr %cpus, i64 %bytes, i1 false)
  %capped = call i32 @llvm.umin.i32(i32 %threads, i32 255)
  %enough = icmp ult i32 %capped, 2
  br i1 %enough, label %free, label %more
more:
  %wanted = sub i32 %capped, 1
  call void @grow(i32 %wanted)
  br label %free
free:
  store atomic i32 0, ptr @busy release, align 4
  br label %out
out:
  ret void
}

define void @autosched_pool_stop() {
start:
  %mine = call i1 @lock()
  br i1 %mine, label %stop, label %out
stop:
  store atomic i32 1, ptr @stopping seq_cst, align 4
  call void @wake()
  br label %loop
loop:
  %have = load i32, ptr @workers
  %none = icmp eq i32 %have, 0
  br i1 %none, label %done, label %join
join:
  %now = sub i32 %have, 1
  store i32 %now, ptr @workers
  %at = zext i32 %now to i64
  %slot = getelementptr i64, ptr @threads, i64 %at
  %thread = load i64, ptr %slot
  %j = call i32 @pthread_join(i64 %thread, ptr null)
  br label %loop
done:
  store atomic i32 0, ptr @stopping seq_cst, align 4
  store atomic i32 0, ptr @busy release, align 4
  br label %out
out:
  ret void
}

; A forked child has the memory and none of the threads.
define void @autosched_pool_forget() {
  store i32 0, ptr @workers
  store i32 0, ptr @ready
  store i32 0, ptr @sleepers
  store i32 0, ptr @busy
  store i64 0, ptr @ticket
  ret void
}

define i32 @autosched_pool_workers() {
  %n = load i32, ptr @workers
  ret i32 %n
}

declare i32 @llvm.umin.i32(i32, i32)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""

_PLACE_LINUX = """
declare i32 @pthread_setaffinity_np(i64, i64, ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define internal void @place(i64 %thread, i64 %number) {
start:
  %set = alloca [128 x i8], align 8
  %count = load i32, ptr @pins
  %none = icmp eq i32 %count, 0
  br i1 %none, label %out, label %pin
pin:
  %wide = zext i32 %count to i64
  %at = urem i64 %number, %wide
  %slot = getelementptr i32, ptr @pin, i64 %at
  %cpu = load i32, ptr %slot
  call void @llvm.memset.p0.i64(ptr %set, i8 0, i64 128, i1 false)
  %byte = lshr i32 %cpu, 3
  %byte64 = zext i32 %byte to i64
  %where = getelementptr i8, ptr %set, i64 %byte64
  %low = and i32 %cpu, 7
  %bit = shl i32 1, %low
  %bit8 = trunc i32 %bit to i8
  store i8 %bit8, ptr %where
  %r = call i32 @pthread_setaffinity_np(i64 %thread, i64 128, ptr %set)
  br label %out
out:
  ret void
}
"""
_PLACE_ELSEWHERE = "define internal void @place(i64 %thread, i64 %number) {\n  ret void\n}\n"


def runtime_ir() -> str:
    """The pool's module text for this machine."""
    declaration, pause = host_backend().pause or ("", "%y.PAUSED = call i32 @sched_yield()")
    text = _IR.replace("PAUSE_DECLARATION", declaration)
    text = text.replace("PLACE", _PLACE_LINUX if sys.platform == "linux" else _PLACE_ELSEWHERE)
    parts = text.split("PAUSE")
    text = "".join(p + (pause.replace("PAUSED", str(n)) if n < len(parts) - 1 else "") for n, p in enumerate(parts))
    return text.replace("JOIN_SPINS", str(JOIN_SPINS)).replace("SPINS", str(SPINS))
