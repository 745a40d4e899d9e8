// The log viewer on real logs.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { expect, LONG_LINES, test } from './stories'

test('three clicks from a failing job on the overview to the line that explains it', async ({ page }) => {
  await page.goto('/')
  const failing = page.locator('section', { hasText: 'Failing now' })
  await failing
    .getByRole('row', { name: /flaky-report/ })
    .getByRole('link')
    .last()
    .click()
  await expect(page.getByText('no such column: amount')).toBeVisible()
})

test('a long log opens at its end, and its beginning is one press away', async ({ page, seeds }) => {
  let bytes = 0
  page.on('response', async (response) => {
    if (response.url().includes('/logs?')) bytes += (await response.body()).length
  })
  await page.goto(`/jobs/${seeds.long}?stream=stdout`)
  await expect(page.getByText(`line ${LONG_LINES} of a long log`)).toBeVisible()
  expect(bytes).toBeLessThan(2 * 1024 * 1024)
  expect(await page.locator('.log-row').count()).toBeLessThan(200)
  await page.getByRole('button', { name: 'Start', exact: true }).click()
  await expect(page.getByText('line 1 of a long log', { exact: true })).toBeVisible()
})

test('the whole log is searched by the server, and a match is shown in its place', async ({ page, seeds }) => {
  await page.goto(`/jobs/${seeds.long}?stream=stdout`)
  await expect(page.getByText(`line ${LONG_LINES} of a long log`)).toBeVisible()
  await page.keyboard.press('Control+f')
  await page.keyboard.type('line 77777 ')
  await expect(page.getByText('1 found')).toBeVisible()
  await page.keyboard.press('Enter')
  await expect(page.locator('.log-row.marked')).toContainText('line 77777 of a long log')
  await expect(page.locator('.log-row.marked .log-number')).toHaveText('77777')
  const link = page.url()
  await page.goto('about:blank')
  await page.goto(link)
  await expect(page.locator('.log-row.marked')).toContainText('line 77777 of a long log')
})

test('bytes that are no text are shown as what they are, and come down as they were', async ({ page, seeds }) => {
  await page.goto(`/jobs/${seeds.binary}`)
  await expect(page.locator('.log-text', { hasText: 'a\\xff\\xfeb' })).toBeVisible()
  await expect(page.locator('.log-text', { hasText: '\\x00\\x01' })).toBeVisible()
  const waiting = page.waitForEvent('download')
  await page.getByRole('link', { name: 'stdout' }).click()
  const file = readFileSync(await (await waiting).path())
  const hash = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
  expect(hash(file)).toBe(hash(Buffer.from('a\xff\xfeb\n\x00\x01\nEND\n', 'latin1')))
})

test('colours are kept, both streams stand together, and each apart', async ({ page, seeds }) => {
  await page.goto(`/jobs/${seeds.success}`)
  await expect(page.locator('.fg-1')).toHaveText('red')
  await expect(page.locator('.log-row.stderr')).toContainText('oops')
  await page.getByRole('radio', { name: /stdout/ }).click()
  await expect(page.locator('.log-row')).toHaveCount(2)
})

test('a service that writes is followed until the reader scrolls away', async ({ page, seeds }) => {
  await page.goto(`/jobs/${seeds.service}`)
  const last = page.locator('.log-row').last()
  const before = await last.textContent()
  await expect(last).not.toHaveText(before ?? '')
  await expect(page.getByRole('button', { name: 'Follow' })).toHaveAttribute('aria-pressed', 'true')
})

test('attempts have their own logs', async ({ page, seeds }) => {
  await page.goto(`/jobs/${seeds.failed}`)
  await expect(page.getByText('Attempt 3 ended: exit 3')).toBeVisible()
  await page.keyboard.press('[')
  await expect(page.getByText('Attempt 2 ended: exit 3')).toBeVisible()
})
