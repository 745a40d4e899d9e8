// Which page stands at which address. Every page is a chunk of its own.
import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query'
import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from '@tanstack/react-router'
import { baseUrl, CallError } from '../api/client'
import { parseSearch, writeSearch, type Search } from './search-params'
import { Shell } from './shell'
import { NotFound, PageError } from './stops'

function signedOut(error: unknown) {
  if (!(error instanceof CallError) || error.status !== 401) return
  const here = router.state.location
  if (here.pathname === '/login') return
  void router.navigate({ to: '/login', search: { next: here.href }, replace: true })
}

export const queryClient = new QueryClient({
  queryCache: new QueryCache({ onError: signedOut }),
  mutationCache: new MutationCache({ onError: signedOut }),
  defaultOptions: {
    queries: {
      staleTime: 2_000,
      networkMode: 'always',
      refetchOnWindowFocus: false,
      refetchOnReconnect: false,
      retry: (count, error) => count < 1 && error instanceof CallError && (error.status === 0 || error.status >= 500),
    },
    mutations: { networkMode: 'always' },
  },
})

const root = createRootRoute({ validateSearch: (search: Record<string, unknown>) => search as Search })
const login = createRoute({
  getParentRoute: () => root,
  path: '/login',
  component: lazyRouteComponent(() => import('../session/login-page')),
})
const shell = createRoute({ getParentRoute: () => root, id: 'shell', component: Shell })

const overview = createRoute({
  getParentRoute: () => shell,
  path: '/',
  component: lazyRouteComponent(() => import('../overview/overview-page')),
})
const jobs = createRoute({
  getParentRoute: () => shell,
  path: '/jobs',
  component: lazyRouteComponent(() => import('../jobs/list/jobs-page')),
})
const job = createRoute({
  getParentRoute: () => shell,
  path: '/jobs/$id',
  component: lazyRouteComponent(() => import('../jobs/job/job-page')),
})
/** What the command line prints: short enough for a terminal. */
const shortJob = createRoute({
  getParentRoute: () => root,
  path: '/j/$id',
  beforeLoad: ({ params }) => redirect({ to: '/jobs/$id', params, throw: true }),
})
const nodes = createRoute({
  getParentRoute: () => shell,
  path: '/nodes',
  component: lazyRouteComponent(() => import('../nodes/nodes-page')),
})
const node = createRoute({
  getParentRoute: () => shell,
  path: '/nodes/$id',
  component: lazyRouteComponent(() => import('../nodes/node-page')),
})
const submit = createRoute({
  getParentRoute: () => shell,
  path: '/submit',
  component: lazyRouteComponent(() => import('../submit/submit-page')),
})
const audit = createRoute({
  getParentRoute: () => shell,
  path: '/audit',
  component: lazyRouteComponent(() => import('../audit/audit-page')),
})
const tokens = createRoute({
  getParentRoute: () => shell,
  path: '/tokens',
  component: lazyRouteComponent(() => import('../tokens/tokens-page')),
})
const reference = createRoute({
  getParentRoute: () => shell,
  path: '/reference',
  component: lazyRouteComponent(() => import('../reference/reference-page')),
})

export const router = createRouter({
  routeTree: root.addChildren([
    login,
    shortJob,
    shell.addChildren([overview, jobs, job, nodes, node, submit, audit, tokens, reference]),
  ]),
  basepath: new URL(baseUrl).pathname,
  parseSearch,
  stringifySearch: writeSearch,
  defaultPreload: 'intent',
  scrollRestoration: true,
  defaultNotFoundComponent: NotFound,
  defaultErrorComponent: PageError,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
