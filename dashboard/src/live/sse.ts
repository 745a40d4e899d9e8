/** One message of an event stream; absent fields are empty. */
export interface SseMessage {
  id: string
  event: string
  data: string
}

/** Cuts a stream of server-sent events into messages, however the bytes were split. */
export class SseParser {
  private rest = ''
  private message: SseMessage = { id: '', event: '', data: '' }

  push(text: string): SseMessage[] {
    const lines = (this.rest + text).split('\n')
    this.rest = lines.pop() ?? ''
    const messages: SseMessage[] = []
    for (const raw of lines) {
      const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw
      if (line === '') {
        if (this.message.id !== '' || this.message.data !== '') messages.push(this.message)
        this.message = { id: '', event: '', data: '' }
      } else {
        this.field(line)
      }
    }
    return messages
  }

  private field(line: string) {
    const colon = line.indexOf(':')
    if (colon === 0) return
    const name = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (name === 'id') this.message.id = value
    if (name === 'event') this.message.event = value
    if (name === 'data') this.message.data += (this.message.data === '' ? '' : '\n') + value
  }
}
