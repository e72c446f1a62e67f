export { forwardTo } from './forward.js'
export { type PageFiles, pageFilesIn } from './page-files.js'
export { checkDashboard, type Dashboard, type DashboardOptions, defaultDashboard, startDashboard } from './server.js'
