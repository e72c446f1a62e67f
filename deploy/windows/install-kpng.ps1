<#
.SYNOPSIS
Installs kpng as a Windows service, or as two: the core, and the backend that depends on it.

.DESCRIPTION
kpng.exe is a console program, and Windows starts only programs that speak to its service manager. NSSM does that for it: it
starts kpng, ends it with Ctrl+C, and writes what it says to log files that are rotated. The services are then services like any
other, and sc.exe sets what they depend on and what happens when one fails.

Run it as an administrator. Running it again replaces the services.

.EXAMPLE
.\install-kpng.ps1 -Kubeconfig C:\k\kube-proxy.conf -ReplaceKubeProxy

.EXAMPLE
.\install-kpng.ps1 -Kubeconfig C:\k\kube-proxy.conf -Apart -DependOnService containerd -Dependents antrea-agent -ReplaceKubeProxy

.EXAMPLE
.\install-kpng.ps1 -Kubeconfig C:\k\kube-proxy.conf -Backend to-winkernel -NetworkName cbr0 -ReplaceKubeProxy
#>
[CmdletBinding(SupportsShouldProcess)]
param(
  # kpng-win-x64.exe of a release.
  [string] $Kpng = 'C:\k\kpng\kpng.exe',
  [string] $Nssm = 'nssm.exe',
  [Parameter(Mandatory)] [string] $Kubeconfig,
  [string] $NodeName = [System.Net.Dns]::GetHostName().ToLowerInvariant(),
  # to-winkernel is experimental, and must not run beside kube-proxy.
  [ValidateSet('to-winuserspace', 'to-winkernel')] [string] $Backend = 'to-winuserspace',
  # For to-winkernel: the HNS network of the pods and, if it is an overlay, the source address that pods see.
  [string] $NetworkName = '',
  [string] $SourceVip = '',
  # For to-winuserspace: the interface that gets the addresses of Services.
  [string] $Interface = 'vEthernet (HNS Internal NIC)',
  # Where metrics are served. For a Prometheus on another machine: 0.0.0.0:10249; everybody who reaches the node can then read them.
  [string] $MetricsAddress = '127.0.0.1:10249',
  [string] $LogFolder = 'C:\var\log\kpng',
  [ValidateRange(0, 10)] [int] $Verbosity = 2,
  # Two services, with the core's API on loopback between them.
  [switch] $Apart,
  [string] $Api = '127.0.0.1:12090',
  # Services that have to run before kpng.
  [string[]] $DependOnService = @(),
  # Services that depend on kube-proxy and will depend on kpng.
  [string[]] $Dependents = @(),
  # Stops and disables kube-proxy. It stays installed, for the way back.
  [switch] $ReplaceKubeProxy
)

$ErrorActionPreference = 'Stop'

function Invoke-Program([string] $Program, [string[]] $Arguments) {
  & $Program @Arguments | Out-Null
  if ($LASTEXITCODE -ne 0) { throw "$Program $($Arguments -join ' ') failed with $LASTEXITCODE." }
}

# NSSM keeps one string, which Windows splits again at spaces: words with spaces need quotes of their own.
function Join-Words([string[]] $Words) {
  ($Words | ForEach-Object { if ($_ -match '\s') { '"' + $_ + '"' } else { $_ } }) -join ' '
}

function Install-KpngService([string] $Name, [string] $About, [string[]] $Words, [string[]] $After) {
  if (Get-Service -Name $Name -ErrorAction SilentlyContinue) {
    Stop-Service -Name $Name -Force
    Invoke-Program $Nssm @('remove', $Name, 'confirm')
  }
  Invoke-Program $Nssm @('install', $Name, $Kpng)
  Invoke-Program $Nssm @('set', $Name, 'AppParameters', (Join-Words $Words))
  Invoke-Program $Nssm @('set', $Name, 'Description', $About)
  Invoke-Program $Nssm @('set', $Name, 'AppEnvironmentExtra', "NODE_NAME=$NodeName")
  # kpng says everything on standard error; standard output is for what it is asked to print.
  Invoke-Program $Nssm @('set', $Name, 'AppStdout', (Join-Path $LogFolder "$Name.out.log"))
  Invoke-Program $Nssm @('set', $Name, 'AppStderr', (Join-Path $LogFolder "$Name.log"))
  Invoke-Program $Nssm @('set', $Name, 'AppRotateFiles', '1')
  Invoke-Program $Nssm @('set', $Name, 'AppRotateOnline', '1')
  Invoke-Program $Nssm @('set', $Name, 'AppRotateBytes', '10485760')
  # Ctrl+C, on which kpng ends its connections and takes its addresses away, before anything harsher.
  Invoke-Program $Nssm @('set', $Name, 'AppStopMethodConsole', '10000')
  Invoke-Program $Nssm @('set', $Name, 'AppExit', 'Default', 'Restart')
  Invoke-Program $Nssm @('set', $Name, 'AppRestartDelay', '1000')
  # sc.exe wants the space after each =, and an empty list of dependencies as /.
  $depend = if ($After.Count -gt 0) { $After -join '/' } else { '/' }
  Invoke-Program 'sc.exe' @('config', $Name, 'start=', 'delayed-auto', 'depend=', $depend)
  Invoke-Program 'sc.exe' @('failure', $Name, 'reset=', '86400', 'actions=', 'restart/1000/restart/5000/restart/30000')
}

foreach ($path in @($Kpng, $Kubeconfig)) {
  if (-not (Test-Path -LiteralPath $path)) { throw "$path is not there. Give the right path with -Kpng or -Kubeconfig." }
}
if (-not (Get-Command $Nssm -ErrorAction SilentlyContinue)) {
  throw "NSSM ($Nssm) is not there. Install it, or give its path with -Nssm."
}
if ($Backend -eq 'to-winkernel' -and $NetworkName -eq '') {
  throw "to-winkernel needs the HNS network of the pods. Give one that 'hnsdiag list networks' shows with -NetworkName."
}
if ($Backend -eq 'to-winuserspace' -and -not (Get-NetAdapter -Name $Interface -IncludeHidden -ErrorAction SilentlyContinue)) {
  throw "There is no interface '$Interface'. Give one that Get-NetAdapter lists with -Interface."
}

$kpngWords = @('-v', "$Verbosity", 'kube', '--kubeconfig', $Kubeconfig, 'to-local', 'to-winuserspace', '--forwarder-interface', $Interface, '--metrics-bind-address', $MetricsAddress)
$coreWords = @('-v', "$Verbosity", 'kube', '--kubeconfig', $Kubeconfig, 'to-api', '--listen', "tcp://$Api", '--globalv1-api=false')
$backendWords = @('-v', "$Verbosity", 'local', '--api', $Api, 'to-winuserspace', '--forwarder-interface', $Interface, '--metrics-bind-address', $MetricsAddress)

$kernelWords = @('-v', "$Verbosity", 'kube', '--kubeconfig', $Kubeconfig, 'to-local', 'to-winkernel', '--network-name', $NetworkName, '--metrics-bind-address', $MetricsAddress)
$kernelBackendWords = @('-v', "$Verbosity", 'local', '--api', $Api, 'to-winkernel', '--network-name', $NetworkName, '--metrics-bind-address', $MetricsAddress)
if ($Backend -eq 'to-winkernel') {
  $sourceWords = if ($SourceVip -ne '') { @('--source-vip', $SourceVip) } else { @() }
  $kpngWords = $kernelWords + $sourceWords
  $backendWords = $kernelBackendWords + $sourceWords
}

if (-not $PSCmdlet.ShouldProcess($env:COMPUTERNAME, 'install kpng as a service')) { return }
New-Item -ItemType Directory -Force -Path $LogFolder | Out-Null

if ($ReplaceKubeProxy -and (Get-Service -Name kube-proxy -ErrorAction SilentlyContinue)) {
  foreach ($name in $Dependents) { Invoke-Program $Nssm @('set', $name, 'DependOnService', '-kube-proxy') }
  Stop-Service -Name kube-proxy -Force
  Set-Service -Name kube-proxy -StartupType Disabled
}

if ($Apart) {
  Install-KpngService 'kpng' 'Kubernetes Service proxy: core' $coreWords $DependOnService
  Install-KpngService 'kpng-backend' 'Kubernetes Service proxy: backend' $backendWords (@('kpng') + $DependOnService)
  $last = 'kpng-backend'
} else {
  Install-KpngService 'kpng' 'Kubernetes Service proxy' $kpngWords $DependOnService
  $last = 'kpng'
}
# Starting a service starts what it depends on.
Start-Service -Name $last
foreach ($name in $Dependents) {
  Invoke-Program $Nssm @('set', $name, 'DependOnService', "+$last")
  Start-Service -Name $name
}
Get-Service -Name 'kpng*'
Write-Output "Logs are in $LogFolder."
