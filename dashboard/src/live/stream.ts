// One stream of events a page. It reconnects, resumes where it was, falls back to polling, and can be paused.
import { baseUrl } from '../api/client'
import type { Schemas } from '../api/client'
import { SseParser } from './sse'

export type Change = Schemas['Event']
/** `idle`: no page wants events, or nobody looks at this one. */
export type LiveState = 'idle' | 'connecting' | 'live' | 'paused' | 'reconnecting' | 'polling'

/** Some changes, or `null`: something may have been missed, so read everything again. */
export type Batch = readonly Change[] | null
type Listener = (batch: Batch) => void

const GATHER_MS = 150
/** The server says something at least each 15 s; silence beyond this is a dead connection. */
const SILENCE_MS = 40_000
const POLL_MS = 5_000
const RETRY_MS = [250, 500, 1_000, 2_000, 5_000, 10_000]
const POLL_AFTER_FAILURES = 3
const HIDDEN_MS = 20_000
const MAX_GATHERED = 2_000

export class EventStream {
  state: LiveState = 'idle'
  private job: string | null = null
  private wanted = false
  private paused = false
  private hidden = false
  private cursor: string | null = null
  private failures = 0
  private heard = 0
  private connection: AbortController | null = null
  private gathered: Change[] = []
  private overflow = false
  private flushTimer: ReturnType<typeof setTimeout> | undefined
  private retryTimer: ReturnType<typeof setTimeout> | undefined
  private pollTimer: ReturnType<typeof setInterval> | undefined
  private hiddenTimer: ReturnType<typeof setTimeout> | undefined
  private readonly listeners = new Set<Listener>()
  private readonly watchers = new Set<() => void>()

  constructor() {
    document.addEventListener('visibilitychange', () => this.visibilityChanged())
    window.addEventListener('online', () => this.reconnectNow())
    setInterval(() => this.watchSilence(), 5_000)
  }

  listen(listener: Listener): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  /** Tells of each change of `state`. */
  watch(watcher: () => void): () => void {
    this.watchers.add(watcher)
    return () => this.watchers.delete(watcher)
  }

  /** What the page wants: everything, one job's events, or (`undefined`) nothing. */
  want(job: string | null | undefined): void {
    const wanted = job !== undefined
    if (wanted === this.wanted && (job ?? null) === this.job) return
    this.wanted = wanted
    this.job = job ?? null
    this.cursor = null
    this.restart()
  }

  pause(): void {
    this.paused = true
    this.disconnect()
    this.say('paused')
  }

  resume(): void {
    this.paused = false
    this.tell(null)
    this.restart()
  }

  reconnectNow(): void {
    if (this.state === 'reconnecting' || this.state === 'polling') this.restart()
  }

  private restart() {
    this.disconnect()
    this.failures = 0
    if (!this.wanted || this.hidden) this.say(this.paused ? 'paused' : 'idle')
    else if (!this.paused) void this.connect('connecting')
  }

  private disconnect() {
    this.connection?.abort()
    this.connection = null
    clearTimeout(this.retryTimer)
    clearInterval(this.pollTimer)
    this.pollTimer = undefined
  }

  private async connect(state: LiveState) {
    if (this.state !== 'polling') this.say(state)
    const connection = new AbortController()
    this.connection = connection
    this.heard = Date.now()
    try {
      await this.follow(connection)
    } catch {
      // Whatever it was, the way on is the same: try again.
    }
    if (this.connection !== connection) return
    this.connection = null
    this.retryLater()
  }

  /** Ends, by returning or by throwing, when the connection does. */
  private async follow(connection: AbortController) {
    const url = new URL('api/v1/events', baseUrl)
    if (this.job !== null) url.searchParams.set('job', this.job)
    const resumed = this.cursor
    const headers: Record<string, string> = { accept: 'text/event-stream' }
    if (resumed !== null) headers['last-event-id'] = resumed
    const response = await fetch(url, {
      headers,
      signal: connection.signal,
      credentials: 'same-origin',
      cache: 'no-store',
    })
    if (response.status === 410) this.cursor = null
    if (!response.ok || response.body === null) throw new Error(String(response.status))
    // Without a place to resume from nobody knows what was missed in between.
    if (resumed === null && this.failures > 0) this.tell(null)
    const parser = new SseParser()
    const decoder = new TextDecoder()
    const reader = response.body.getReader()
    for (;;) {
      // One piece after the other is what a stream is.
      // oxlint-disable-next-line no-await-in-loop
      const piece = await reader.read()
      if (piece.done) return
      this.heard = Date.now()
      for (const message of parser.push(decoder.decode(piece.value, { stream: true }))) {
        if (message.id !== '') this.cursor = message.id
        if (message.event === 'start') this.started()
        if (message.event === 'change') this.gather(JSON.parse(message.data) as Change)
      }
    }
  }

  private started() {
    this.failures = 0
    clearInterval(this.pollTimer)
    this.pollTimer = undefined
    this.say('live')
  }

  private retryLater() {
    const delay = RETRY_MS[Math.min(this.failures, RETRY_MS.length - 1)] ?? 10_000
    this.failures += 1
    if (this.failures > POLL_AFTER_FAILURES) {
      this.say('polling')
      this.pollTimer ??= setInterval(() => this.tell(null), POLL_MS)
    } else {
      this.say('reconnecting')
    }
    this.retryTimer = setTimeout(() => void this.connect('reconnecting'), delay)
  }

  private gather(change: Change) {
    if (this.gathered.length < MAX_GATHERED) this.gathered.push(change)
    else this.overflow = true
    this.flushTimer ??= setTimeout(() => {
      this.flushTimer = undefined
      const batch = this.overflow ? null : this.gathered
      this.gathered = []
      this.overflow = false
      if (!this.paused) this.tell(batch)
    }, GATHER_MS)
  }

  private tell(batch: Batch) {
    for (const listener of this.listeners) listener(batch)
  }

  private say(state: LiveState) {
    if (this.state === state) return
    this.state = state
    for (const watcher of this.watchers) watcher()
  }

  /** A machine that slept wakes with a connection that nobody speaks on any more. */
  private watchSilence() {
    if (this.connection === null || Date.now() - this.heard < SILENCE_MS) return
    this.disconnect()
    this.retryLater()
  }

  private visibilityChanged() {
    clearTimeout(this.hiddenTimer)
    if (document.hidden) {
      this.hiddenTimer = setTimeout(() => {
        this.hidden = true
        if (!this.paused) this.restart()
      }, HIDDEN_MS)
      return
    }
    if (Date.now() - this.heard > SILENCE_MS) this.hidden = true
    if (!this.hidden) return
    this.hidden = false
    if (this.paused) return
    // What is kept of the cursor brings what was missed; polling pages read anew.
    this.tell(null)
    this.restart()
  }
}
