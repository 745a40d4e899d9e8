// A real server for the stories: started, filled with real jobs, asked, stopped and started again.
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

export interface Job {
  id: string
  status: string
  attempt?: number
}
type Spec = Record<string, unknown>

const WAIT_MS = 60_000
const LOOK_MS = 100

export class Yard {
  url = ''
  /** Signs a browser in once. */
  login = ''
  token = ''
  private process: ChildProcess | undefined
  private readonly folder = mkdtempSync(join(tmpdir(), 'jobyard-e2e-'))
  private listen = '127.0.0.1:0'

  async start(): Promise<void> {
    const bin = process.env['JOBYARD_BIN']
    if (bin === undefined) throw new Error('JOBYARD_BIN names the jobyard binary that the stories run on')
    const child = spawn(bin, ['up', '--data-dir', this.folder, '--listen', this.listen], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    this.process = child
    await new Promise<void>((resolve, reject) => {
      child.on('exit', (code) => reject(new Error(`the server left with ${code}`)))
      createInterface({ input: child.stdout }).on('line', (line) => {
        const [word, address] = line.split(' ')
        if (word === 'ready') this.url = address ?? ''
        if (word === 'login') this.login = address ?? ''
        if (this.url !== '' && this.login !== '') resolve()
      })
    })
    // The next start takes the same port: a page that is open finds it again.
    this.listen = new URL(this.url).host
    this.token = readFileSync(join(this.folder, 'admin.token'), 'utf8').trim()
  }

  /** SIGKILL: what a power cut does. */
  async kill(): Promise<void> {
    const child = this.process
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const left = new Promise((resolve) => child.on('exit', resolve))
    child.removeAllListeners('exit')
    const gone = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    await Promise.race([left, gone])
    this.login = ''
  }

  /** Ends the server, and with a second signal the attempts that would go on. */
  async end(): Promise<void> {
    const child = this.process
    if (child !== undefined && child.exitCode === null && child.signalCode === null) {
      child.removeAllListeners('exit')
      const gone = new Promise((resolve) => child.once('exit', resolve))
      for (const job of await this.running()) await this.call('POST', `jobs/${job.id}/cancel`)
      for (const job of await this.running()) await this.until(job.id, 'cancelled')
      child.kill('SIGINT')
      await gone
    }
    rmSync(this.folder, { recursive: true, force: true })
  }

  private async running(): Promise<Job[]> {
    const page = (await this.call('GET', 'jobs?status=running&limit=500')) as { items: Job[] }
    return page.items
  }

  async call(method: string, path: string, body?: unknown): Promise<unknown> {
    const response = await fetch(`${this.url}/api/v1/${path}`, {
      method,
      headers: { authorization: `Bearer ${this.token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return text === '' ? null : JSON.parse(text)
  }

  async submit(name: string, command: string, spec: Spec = {}): Promise<string> {
    const job = (await this.call('POST', 'jobs', {
      name,
      command: ['sh', '-c', command],
      max_retries: 0,
      ...spec,
    })) as Job
    return job.id
  }

  async until(id: string, ...statuses: string[]): Promise<Job> {
    const end = Date.now() + WAIT_MS
    for (;;) {
      const job = (await this.call('GET', `jobs/${id}`)) as Job
      if (statuses.includes(job.status)) return job
      if (Date.now() > end) throw new Error(`${id} is ${job.status}, not ${statuses.join(' or ')}`)
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    }
  }
}
