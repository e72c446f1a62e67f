#!/usr/bin/env node
import { main } from '../dist/main.js'

process.exitCode = await main(['local', 'to-json', ...process.argv.slice(2)], 'kpng-json')
