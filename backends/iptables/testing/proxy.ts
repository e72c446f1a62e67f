import { silentLog } from '@kpng/api'
import { options } from '../../nft/testing/cases.js'
import { serveAndChange } from '../../nft/testing/serve.js'
import { iptablesBackend } from '../backend.js'
import type { Flavour } from '../flavour.js'

// Arguments: the flavour, or `cleanup`; `large` for the rules of a large cluster; `churn` if endpoints of the Service web come and go.

const [, , argument, size, order] = process.argv
const flavour = argument === 'cleanup' ? {} : { flavour: argument as Flavour }
const largeClusterEndpoints = size === 'large' ? 0 : 1000
const backend = iptablesBackend({ ...options, log: silentLog, name: 'kpng', largeClusterEndpoints, ...flavour })
if (argument === 'cleanup') await backend.cleanup()
else await serveAndChange(backend, order === 'churn' ? 10 : 50, order === 'churn')
