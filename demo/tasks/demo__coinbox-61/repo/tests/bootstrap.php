<?php

declare(strict_types=1);

spl_autoload_register(static function (string $class): void {
    foreach (['Coinbox\\Tests\\' => __DIR__ . '/', 'Coinbox\\' => dirname(__DIR__) . '/src/'] as $prefix => $folder) {
        if (str_starts_with($class, $prefix)) {
            $file = $folder . str_replace('\\', '/', substr($class, strlen($prefix))) . '.php';
            if (is_file($file)) {
                require $file;
            }

            return;
        }
    }
});
