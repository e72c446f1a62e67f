// A shop for the pictures of a real kpng: Deployments and Services in a few namespaces, as a list for `kubectl apply`.

const teams: Readonly<Record<string, string>> = {
  accounts: 'api consents devices login mail passwords profiles roles sessions tokens',
  catalog: 'api brands images import prices search similar stock translations variants videos',
  checkout: 'addresses basket discounts gifts orders taxes vouchers',
  delivery: 'carriers depots labels returns routes slots tracking',
  insights: 'clicks dashboards events exports reports',
  payments: 'api banks cards currencies fraud invoices ledger limits payouts refunds wallets webhooks',
  storefront: 'assets banners home landing menus reviews sitemap themes',
  warehouse: 'bins counts inbound outbound pickers robots shelves',
}

/** How many pods a Service has, unless two. None: nobody serves it. */
const replicas: Readonly<Record<string, number>> = {
  'catalog/search': 6,
  'catalog/api': 4,
  'payments/api': 4,
  'storefront/home': 5,
  'delivery/labels': 1,
  'warehouse/robots': 3,
  'accounts/mail': 0,
  'insights/exports': 0,
}
/** Open to the outside. */
const nodePorts = new Set(['payments/api', 'storefront/home'])
/** A client stays with one pod. */
const affine = new Set(['checkout/basket', 'payments/api'])

const names = Object.entries(teams).flatMap(([namespace, apps]) =>
  apps.split(' ').map((app) => [namespace, app] as const),
)

export const services = names.length
export const refused = Object.values(replicas).filter((pods) => pods === 0).length

export const shop = {
  apiVersion: 'v1',
  kind: 'List',
  items: [
    ...Object.keys(teams).map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })),
    ...names.flatMap(([namespace, app]) => [deployment(namespace, app), service(namespace, app)]),
  ],
}

function deployment(namespace: string, app: string) {
  const labels = { app }
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: app, namespace },
    spec: {
      replicas: replicas[`${namespace}/${app}`] ?? 2,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: app, image: app, ports: [{ containerPort: 8080 }] }] },
      },
    },
  }
}

function service(namespace: string, app: string) {
  const path = `${namespace}/${app}`
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: app, namespace },
    spec: {
      type: nodePorts.has(path) ? 'NodePort' : 'ClusterIP',
      selector: { app },
      sessionAffinity: affine.has(path) ? 'ClientIP' : 'None',
      ports: [{ name: 'http', port: 8080, targetPort: 8080 }],
    },
  }
}
