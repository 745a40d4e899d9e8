// Every page, in each language and theme: it comes, it can be read by all, it fits a telephone, and text of others is text.
import { expect, expectAccessible, hostile, prefer, test, type Seeds } from './stories'

const titles = {
  en: {
    overview: 'Overview',
    jobs: 'Jobs',
    nodes: 'Nodes',
    submit: 'Submit a job',
    audit: 'Audit',
    tokens: 'Tokens',
    reference: 'API reference',
  },
  'zh-TW': {
    overview: '總覽',
    jobs: '作業',
    nodes: '節點',
    submit: '提交作業',
    audit: '稽核',
    tokens: '權杖',
    reference: 'API 參考',
  },
  'zh-CN': {
    overview: '总览',
    jobs: '作业',
    nodes: '节点',
    submit: '提交作业',
    audit: '审计',
    tokens: '令牌',
    reference: 'API 参考',
  },
} as const
type Title = keyof (typeof titles)['en']

const pages = (seeds: Seeds): [string, Title | RegExp][] => [
  ['/', 'overview'],
  ['/jobs', 'jobs'],
  ['/jobs?status=final_failed&label=team%3Arev', 'jobs'],
  ['/nodes', 'nodes'],
  ['/submit', 'submit'],
  ['/audit', 'audit'],
  ['/tokens', 'tokens'],
  ['/reference', 'reference'],
  [`/jobs/${seeds.failed}`, /flaky-report/],
  [`/jobs/${seeds.waiting}`, /too-large/],
  [`/jobs/${seeds.hostile}?tab=spec`, /onerror/],
]

for (const language of ['en', 'zh-TW', 'zh-CN'] as const) {
  for (const theme of ['light', 'dark'] as const) {
    test(`each page in ${language}, ${theme}`, async ({ page, seeds }) => {
      test.setTimeout(180_000)
      await prefer(page, { language, theme })
      for (const [path, title] of pages(seeds)) {
        await page.goto(path)
        const name = typeof title === 'string' ? titles[language][title] : title
        await expect(page.getByRole('heading', { level: 1, name })).toBeVisible()
        await expect(page.locator('.loading')).toHaveCount(0)
        expect(await page.locator('html').getAttribute('lang')).toBe(language)
        await expectAccessible(page)
      }
    })
  }
}

test('each page fits 390 pixels', async ({ page, seeds }) => {
  test.setTimeout(120_000)
  await page.setViewportSize({ width: 390, height: 844 })
  for (const [path] of pages(seeds)) {
    await page.goto(path)
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
    await expect(page.locator('.loading')).toHaveCount(0)
    const [wide, visible] = await page.evaluate(() => [
      document.documentElement.scrollWidth,
      document.documentElement.clientWidth,
    ])
    expect(wide, path).toBeLessThanOrEqual(visible ?? 0)
  }
  await expectAccessible(page)
})

test('names, labels, logs and errors of others are text on every page', async ({ page, seeds, yard }) => {
  const nodes = (await yard.call('GET', 'nodes')) as { items: { id: string }[] }
  const places = ['/', '/jobs', '/audit', `/nodes/${nodes.items[0]?.id}`, `/submit?from=${seeds.hostile}`]
  const tabs = ['log', 'events', 'resources', 'spec', 'artifacts', 'api'].map(
    (tab) => `/jobs/${seeds.hostile}?tab=${tab}`,
  )
  for (const path of [
    ...places,
    ...tabs,
    `/jobs?q=${encodeURIComponent(hostile)}`,
    `/jobs?name=${encodeURIComponent(hostile)}`,
  ]) {
    await page.goto(path)
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
    await expect(page.locator('.loading')).toHaveCount(0)
    expect(await page.locator('img, main script').count(), path).toBe(0)
  }
  await page.goto(`/jobs/${seeds.hostile}`)
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(hostile)
  await expect(page.locator('.log-text').first()).toHaveText(hostile)
})

test('an address that leads nowhere says so', async ({ page }) => {
  await page.goto('/nothing/here')
  await expect(page.getByRole('heading', { name: 'No such page' })).toBeVisible()
  await page.goto('/jobs/01a22dd6-0000-7000-8000-000000000000')
  await expect(page.getByRole('alert')).toContainText('There is no such thing')
})

test('who is not signed in signs in with a token, and comes to the page wanted', async ({ browser, yard, seeds }) => {
  const context = await browser.newContext({ locale: 'zh-HK' })
  const page = await context.newPage()
  await page.goto(`${yard.url}/jobs/${seeds.failed}?tab=events`)
  await page.getByLabel('權杖', { exact: true }).fill('jy_wrong')
  await page.getByRole('button', { name: '登入' }).click()
  await expect(page.getByRole('alert')).toContainText('權杖')
  await expectAccessible(page)
  await page.getByLabel('權杖', { exact: true }).fill(yard.token)
  await page.getByRole('button', { name: '登入' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'flaky-report' })).toBeVisible()
  await expect(page.getByRole('tab', { name: '事件' })).toHaveAttribute('aria-selected', 'true')
  await page.getByRole('button', { name: /的選單/ }).click()
  await page.getByRole('menuitem', { name: '登出' }).click()
  await expect(page.getByLabel('權杖', { exact: true })).toBeVisible()
  await context.close()
})
