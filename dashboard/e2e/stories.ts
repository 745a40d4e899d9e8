// What every story has: a filled server, and a page that is signed in and fails on what no page may do.
import { AxeBuilder } from '@axe-core/playwright'
import { expect, test as base, type Page } from '@playwright/test'
import { Yard } from './yard'

export const hostile = '"><img src=x onerror=window.hacked=1><script>window.hacked=1</script>'

export interface Seeds {
  success: string
  failed: string
  service: string
  waiting: string
  killed: string
  binary: string
  long: string
  hostile: string
  outputs: string
  waits: string
}

export const LONG_LINES = 200_000

async function seed(yard: Yard): Promise<Seeds> {
  const seeds: Seeds = {
    success: await yard.submit('hello', `echo hello; printf '\\033[31mred\\033[0m\\n'; echo oops >&2`, {
      labels: { team: 'rev' },
    }),
    failed: await yard.submit('flaky-report', 'echo reading input; echo "no such column: amount" >&2; exit 3', {
      max_retries: 2,
      backoff: 1,
      labels: { team: 'rev', env: 'prod' },
    }),
    service: await yard.submit('pricing-api', 'i=0; while :; do i=$((i+1)); echo "request $i"; sleep 0.3; done', {
      kind: 'service',
      max_retries: undefined,
    }),
    waiting: await yard.submit('too-large', 'true', { resources: { memory: '900GiB' } }),
    killed: await yard.submit('killed', 'echo about to die; kill -9 $$'),
    binary: await yard.submit('binary', `printf 'a\\377\\376b\\n\\000\\001\\n'; echo END`),
    long: await yard.submit(
      'long-log',
      `i=0; while [ $i -lt ${LONG_LINES} ]; do i=$((i+1)); echo "line $i of a long log"; done`,
    ),
    hostile: await yard.submit(hostile, `echo '${hostile.replaceAll("'", '')}'; exit 1`, {
      labels: { evil: hostile.slice(0, 60) },
    }),
    outputs: await yard.submit(
      'outputs',
      'mkdir $JOBYARD_OUTPUT/sub; echo a > $JOBYARD_OUTPUT/a.txt; echo b > $JOBYARD_OUTPUT/sub/b.txt',
    ),
    waits: await yard.submit('later', 'true', { run_at: '2099-01-01T00:00:00Z' }),
  }
  for (const id of [seeds.success, seeds.binary, seeds.long, seeds.outputs]) await yard.until(id, 'success')
  for (const id of [seeds.failed, seeds.killed, seeds.hostile]) await yard.until(id, 'final_failed')
  await yard.until(seeds.service, 'running')
  return seeds
}

interface WorkerFixtures {
  yard: Yard
  seeds: Seeds
  session: { name: string; value: string; domain: string; path: string }[]
}

export const test = base.extend<object, WorkerFixtures>({
  yard: [
    // oxlint-disable-next-line no-empty-pattern
    async ({}, give) => {
      const yard = new Yard()
      await yard.start()
      await give(yard)
      await yard.end()
    },
    { scope: 'worker', timeout: 60_000 },
  ],
  seeds: [async ({ yard }, give) => give(await seed(yard)), { scope: 'worker', timeout: 180_000, auto: true }],
  session: [
    async ({ yard, browser }, give) => {
      const context = await browser.newContext()
      const page = await context.newPage()
      await page.goto(yard.login)
      await expect(page.getByRole('heading', { level: 1, name: 'Overview' })).toBeVisible()
      expect(page.url()).not.toContain('#')
      const cookies = await context.cookies()
      await context.close()
      await give(cookies)
    },
    { scope: 'worker', timeout: 60_000 },
  ],
  baseURL: async ({ yard }, give) => give(yard.url),
  page: async ({ page, yard, session }, give) => {
    await page.context().addCookies(session)
    const faults: string[] = []
    page.on('pageerror', (error) => faults.push(error.message))
    page.on('console', (message) => {
      if (/Content.Security.Policy|Refused to/i.test(message.text())) faults.push(message.text())
    })
    page.on('request', (request) => {
      const url = new URL(request.url())
      if (url.protocol.startsWith('http') && url.origin !== yard.url) faults.push(`a request to ${url.origin}`)
    })
    await give(page)
    expect(await page.evaluate(() => (window as unknown as { hacked?: number }).hacked)).toBeUndefined()
    expect(faults).toEqual([])
  },
})

export { expect }

/** Nothing serious or critical. */
export async function expectAccessible(page: Page): Promise<void> {
  const results = await new AxeBuilder({ page })
    .withTags(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'])
    .analyze()
  const serious = results.violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
  expect(serious.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' | ')}`)).toEqual([])
}

export async function prefer(page: Page, preferences: Record<string, unknown>): Promise<void> {
  await page.addInitScript((value) => localStorage.setItem('jobyard.preferences', value), JSON.stringify(preferences))
}
