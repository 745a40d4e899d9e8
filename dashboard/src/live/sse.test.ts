import { expect, test } from 'vitest'
import { SseParser } from './sse'

const stream =
  ': hello\nevent: start\nid: 4.1\ndata: {"cursor":"4.1"}\n\n: alive\nid: 9.0\n\nevent: change\nid: 9.2\ndata: a\ndata: b\n\n'
const messages = [
  { id: '4.1', event: 'start', data: '{"cursor":"4.1"}' },
  { id: '9.0', event: '', data: '' },
  { id: '9.2', event: 'change', data: 'a\nb' },
]

test('messages come out whole wherever the stream is cut', () => {
  for (let cut = 0; cut <= stream.length; cut += 1) {
    const parser = new SseParser()
    expect([...parser.push(stream.slice(0, cut)), ...parser.push(stream.slice(cut))]).toEqual(messages)
  }
})

test('line ends of two characters are line ends', () => {
  expect(new SseParser().push(stream.replaceAll('\n', '\r\n'))).toEqual(messages)
})
