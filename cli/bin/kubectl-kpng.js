#!/usr/bin/env node
import { kubectlPlugin } from '../dist/kubectl-plugin.js'

process.exitCode = await kubectlPlugin(process.argv.slice(2))
