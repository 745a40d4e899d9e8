// The part of a log that is in memory: grows at both sides as it is looked at, is cut at the other, follows the end.
import { assemble, trim, type Anchor, type Line, type Piece } from './lines'
import { readSizes, type LogSizes, type LogSource, type Stretch } from './source'

export interface LogView {
  lines: readonly Line[]
  /** The first byte, or the last that there is, is in sight. */
  atStart: boolean
  atEnd: boolean
  over: boolean
  sizes: LogSizes | null
  /** The first reading is still on its way. */
  opening: boolean
  error: unknown
  /** Counts up when another place was opened. */
  generation: number
}

const MAX_BYTES = 4 * 1024 * 1024
const FOLLOW_MS = 700
const FOLLOW_IDLE_MS = 2_000

export class LogWindow<Cursor> {
  view: LogView = {
    lines: [],
    atStart: false,
    atEnd: false,
    over: false,
    sizes: null,
    opening: true,
    error: null,
    generation: 0,
  }
  private pieces: Piece[] = []
  private assembled: Piece[] | null = null
  private readonly anchors: Anchor[] = []
  private earlierCursor: Cursor | null = null
  private laterCursor: Cursor | null = null
  private busy = false
  private closed = false
  private following = true
  private idle = 0
  /** Bytes of both streams together up to which all was read or is known to lie before. */
  private seen = 0
  private timer: ReturnType<typeof setTimeout> | undefined
  private readonly watchers = new Set<() => void>()

  constructor(
    private readonly source: LogSource<Cursor>,
    private readonly job: string,
    private readonly attempt: number,
  ) {}

  watch(watcher: () => void): () => void {
    this.watchers.add(watcher)
    return () => this.watchers.delete(watcher)
  }

  /** Opens at one end, or around a byte. `number`: the line there, where it is known. */
  open(at: 'start' | 'end' | number, anchor?: Anchor): void {
    this.closed = false
    if (anchor) this.anchors.push(anchor)
    void this.work(async () => {
      const stretch = await this.source.open(at)
      this.pieces = stretch.pieces
      this.earlierCursor = stretch.earlier
      this.laterCursor = stretch.later
      this.seen = 0
      this.view = { ...this.view, opening: false, generation: this.view.generation + 1 }
    }, true)
    this.schedule(0)
  }

  close(): void {
    this.closed = true
    clearTimeout(this.timer)
  }

  /** Whether new output is read as it comes. */
  follow(following: boolean): void {
    this.following = following
    if (following) this.schedule(0)
  }

  earlier(): void {
    const cursor = this.earlierCursor
    if (cursor === null) return
    void this.work(async () => this.join(await this.source.earlier(cursor), 'start'))
  }

  later(): void {
    const cursor = this.laterCursor
    void this.work(async () => (cursor === null ? this.catchUp() : this.join(await this.source.later(cursor), 'end')))
  }

  private join(stretch: Stretch<Cursor>, side: 'start' | 'end') {
    const before = this.pieces.length + stretch.pieces.length
    if (side === 'start') {
      this.pieces = trim([...stretch.pieces, ...this.pieces], MAX_BYTES, 'end')
      this.earlierCursor = stretch.earlier
      const last = this.pieces.at(-1)
      if (this.pieces.length < before && last) this.laterCursor = this.source.after(last)
    } else {
      this.pieces = trim([...this.pieces, ...stretch.pieces], MAX_BYTES, 'start')
      this.laterCursor = stretch.later
      const first = this.pieces[0]
      if (this.pieces.length < before && first) this.earlierCursor = this.source.before(first)
    }
  }

  private async work(task: () => Promise<void>, force = false) {
    if (this.busy && !force) return
    this.busy = true
    try {
      await task()
      if (this.view.error !== null) this.view = { ...this.view, error: null }
    } catch (error) {
      this.view = { ...this.view, error, opening: false }
    }
    this.busy = false
    this.publish()
  }

  private publish() {
    if (this.closed) return
    if (this.assembled !== this.pieces) {
      this.assembled = this.pieces
      const lines = assemble(this.pieces, this.anchors)
      this.remember(lines)
      this.view = { ...this.view, lines }
    }
    const { view } = this
    const atStart = this.earlierCursor === null
    const atEnd = this.isAtEnd()
    if (view.atStart !== atStart || view.atEnd !== atEnd) this.view = { ...view, atStart, atEnd }
    for (const watcher of this.watchers) watcher()
  }

  /** Once numbered, lines stay so when what was before them is no longer in memory. */
  private remember(lines: readonly Line[]) {
    for (const line of [lines[0], lines[Math.floor(lines.length / 2)], lines.at(-1)]) {
      if (
        line?.number &&
        !this.anchors.some((anchor) => anchor.stream === line.stream && anchor.offset === line.offset)
      ) {
        this.anchors.push({ stream: line.stream, offset: line.offset, number: line.number })
      }
    }
    if (this.anchors.length > 200) this.anchors.splice(0, 100)
  }

  /** Everything up to the sizes as last seen was read. */
  private isAtEnd(): boolean {
    const { sizes } = this.view
    return sizes !== null && this.laterCursor === null && sizes.stdout + sizes.stderr <= this.seen
  }

  private schedule(delay: number) {
    clearTimeout(this.timer)
    if (this.closed) return
    this.timer = setTimeout(() => void this.look(), delay)
  }

  /** Looks how large the log is now, and reads what came if its end is followed. */
  private async look() {
    if (!document.hidden && !this.busy) {
      await this.work(async () => {
        const before = this.view.sizes
        const sizes = (await readSizes(this.job)).find((each) => each.attempt === this.attempt) ?? null
        const grew = sizes !== null && before !== null && sizes.stdout + sizes.stderr > before.stdout + before.stderr
        if (grew || before === null || sizes?.over !== before.over) {
          this.view = { ...this.view, sizes, over: sizes?.over ?? false }
        }
        this.idle = grew ? 0 : this.idle + 1
        if (this.following) await this.catchUp()
      })
    }
    if (!this.view.over) this.schedule(this.idle > 5 ? FOLLOW_IDLE_MS : FOLLOW_MS)
  }

  /** Reads what came behind the loaded end; nothing while the loaded end is not the log's. */
  private async catchUp() {
    const { sizes, opening } = this.view
    if (opening || sizes === null || this.laterCursor !== null || this.isAtEnd()) return
    const came = await this.source.grow(this.pieces)
    // What stands in no piece in memory was before them: it has been seen, too.
    this.seen = Math.max(this.seen, sizes.stdout + sizes.stderr)
    if (came.length === 0) return
    const before = this.pieces.length + came.length
    this.pieces = trim([...this.pieces, ...came], MAX_BYTES, 'start')
    const first = this.pieces[0]
    if (this.pieces.length < before && first) this.earlierCursor = this.source.before(first)
  }
}
