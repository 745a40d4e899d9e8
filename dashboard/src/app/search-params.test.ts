import { expect, test } from 'vitest'
import { parseSearch, writeSearch } from './search-params'

test.each([
  '',
  '?status=final_failed%2Cretry',
  '?label=team%3Arev&label=env',
  '?q=%22%3E%3Cimg+src%3Dx%3E',
  '?exit=137&name=0123',
])('%s comes back as it was', (text) => {
  expect(writeSearch(parseSearch(text))).toBe(text)
})

test('numbers and JSON stay texts', () => {
  expect(parseSearch('?exit=137&q={"a":1}&name=true')).toEqual({ exit: '137', q: '{"a":1}', name: 'true' })
})

test('what is empty is left out', () => {
  expect(writeSearch({ q: '', status: undefined, label: [] })).toBe('')
})
