import { expect, test } from 'vitest'
import { pickLanguage } from './i18n'

test.each([
  [['zh-TW'], 'zh-TW'],
  [['zh-HK', 'en'], 'zh-TW'],
  [['zh-MO'], 'zh-TW'],
  [['zh-SG'], 'zh-CN'],
  [['zh'], 'zh-CN'],
  [['zh-Hant-CN'], 'zh-TW'],
  [['fr', 'zh-CN', 'en'], 'zh-CN'],
  [['de-AT'], 'en'],
  [['not a tag', 'en-GB'], 'en'],
  [[], 'en'],
])('%s reads %s', (wanted, language) => {
  expect(pickLanguage(wanted)).toBe(language)
})
